//! Config layer: typed configuration in Dubbo's own key names.
