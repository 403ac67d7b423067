//! Programs outside the workspace, as users write them: each depends on a crate of it by path, is built and run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace;

/// One program: its name, the crates of the workspace that it depends on, and its source.
struct Program {
    name: &'static str,
    crates: &'static [&'static str],
    source: &'static str,
}

const PROGRAMS: [Program; 3] = [
    Program { name: "on-the-facade", crates: &["dubhe"], source: include_str!("outside/facade.rs") },
    Program {
        name: "on-single-layers",
        crates: &["router", "core", "common"],
        source: include_str!("outside/single_layer.rs"),
    },
    Program { name: "with-a-balancer", crates: &["dubhe"], source: include_str!("outside/balancer.rs") },
];

/// Builds and runs all of them; a program that does not build, or ends with an error, is an error.
pub(crate) fn run() -> Result<()> {
    for program in &PROGRAMS {
        build_and_run(program).with_context(|| format!("the program {}", program.name))?;
        println!("{}: runs", program.name);
    }
    Ok(())
}

fn build_and_run(program: &Program) -> Result<()> {
    let root = workspace::root();
    let folder = workspace::target().join("outside").join(program.name);
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), program.source)?;
    fs::write(folder.join("Cargo.toml"), manifest(program, &root))?;
    // The same versions as the workspace's: nothing is built twice, and nothing new is fetched.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut run = workspace::cargo();
    run.args(["run", "--quiet"]).current_dir(&folder).env("CARGO_TARGET_DIR", workspace::target());
    workspace::run(&mut run)
}

fn manifest(program: &Program, root: &Path) -> String {
    let dependency = |folder: &&str| {
        let name = if *folder == "dubhe" { "dubhe".to_owned() } else { format!("dubhe-{folder}") };
        format!("{name} = {{ path = {:?} }}\n", root.join("crates").join(folder))
    };
    let dependencies: String = program.crates.iter().map(dependency).collect();
    format!(
        "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\
         serde = {{ version = \"1\", features = [\"derive\"] }}\ntokio = {{ version = \"1\", features = [\"full\"] }}\n\n[workspace]\n",
        program.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_outside_names_the_crates_by_path_and_is_no_member() {
        let text = manifest(&PROGRAMS[1], Path::new("/somewhere"));
        assert!(text.contains("dubhe-router = { path = \"/somewhere/crates/router\" }"), "{text}");
        assert!(text.contains("\n[workspace]\n"), "{text}");
    }
}
