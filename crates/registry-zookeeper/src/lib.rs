//! ZooKeeper back end of the registry layer: intents, reconciler, ordered reads.
