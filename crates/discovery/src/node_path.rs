//! Paths of nodes, put together as Dubbo does (`PathUtils.buildPath`).

/// Joins segments to a path. Other members of the fleet read it, so the habits are theirs: an empty segment is left
/// out, one that equals an earlier one too, everything from `?` on is cut off, and `//` counts as `/`.
pub(crate) fn join(segments: &[&str]) -> String {
    let mut path = String::new();
    for (at, segment) in segments.iter().enumerate() {
        if !segment.trim().is_empty() && !segments[..at].contains(segment) {
            path.push('/');
            path.push_str(segment);
        }
    }
    let path = path.split_once('?').map_or(path.as_str(), |(path, _)| path);
    let mut joined = String::with_capacity(path.len());
    for name in path.split('/').filter(|name| !name.is_empty()) {
        joined.push('/');
        joined.push_str(name);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_joined_as_java_does() {
        let rows: [(&[&str], &str); 8] = [
            (&["/dubbo", "metadata"], "/dubbo/metadata"),
            (&["metadata", "demo.Foo", "", "g", "provider"], "/metadata/demo.Foo/g/provider"),
            (&["metadata", "demo.Foo", "1.0", "1.0", "provider"], "/metadata/demo.Foo/1.0/provider"),
            (&["metadata", "metadata"], "/metadata"),
            (&["/dubbo//config/", "dubbo", "a?b=c/d"], "/dubbo/config/dubbo/a"),
            (&["/dubbo/config", "dubbo", "//x//y"], "/dubbo/config/dubbo/x/y"),
            (&[" ", ""], ""),
            (&[], ""),
        ];
        for (segments, expected) in rows {
            assert_eq!(join(segments), expected, "{segments:?}");
        }
    }
}
