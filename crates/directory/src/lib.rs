//! Directory of the cluster layer: provider addresses as one immutable snapshot.
