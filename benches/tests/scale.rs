//! What the report's figures of discovery at scale stand on: by both models a consumer finds everything.

use dubhe_benches::scale::{Fleet, Model, Size};

const SIZE: Size = Size { interfaces: 20, instances: 30 };

#[test]
fn both_models_route_every_interface_to_every_instance() -> anyhow::Result<()> {
    for model in [Model::Interface, Model::Application] {
        let mut fleet = Fleet::new(model, SIZE)?;
        fleet.come_up()?;
        for _ in 0..3 {
            // Ends when all interfaces are routed to the new instance.
            fleet.join()?;
            fleet.leave()?;
            fleet.call_all()?;
        }
    }
    Ok(())
}
