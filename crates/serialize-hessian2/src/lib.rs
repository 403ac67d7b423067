//! Serialize layer: Hessian2 as Dubbo's Java codec writes and reads it.
