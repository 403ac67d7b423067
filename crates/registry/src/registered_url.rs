//! What providers and consumers write into a registry.
