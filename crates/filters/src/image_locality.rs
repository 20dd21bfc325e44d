//! ImageLocality: scores how much of the pod's images the node already has. It reads the images of
//! the node and of the cluster.
//! Specification: plugins-nodes.md 7.9.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use vc_model::{Images, Node};

use crate::normalize::MAX_SCORE;
use crate::rule::Pod;

const MIB: i64 = 1024 * 1024;
/// Sum of image sizes up to which the score is 0, because pulls are quick.
const LEAST_BYTES: i64 = 23 * MIB;
/// Size per container above which the score does not grow.
const MOST_BYTES_PER_CONTAINER: i64 = 1000 * MIB;

/// Returns a function that scores a node from 0 to 100. The scores must not be normalized.
pub fn scorer(pod: Pod<'_>) -> impl Fn(&Node) -> i64 {
    let images = &pod.cluster.images;
    let n_nodes = pod.cluster.nodes_by_name().len();
    let wanted = pod.class.images.iter();
    // An image that several containers use counts for each of them.
    let wanted: Vec<_> = wanted
        .filter_map(|name| images.get(name))
        .map(|id| (id, spread_bytes(images, id, n_nodes)))
        .collect();
    let n_containers = i64::try_from(pod.class.images.len()).unwrap_or(i64::MAX);
    move |node| {
        let present = wanted.iter().filter(|(id, _)| node.images.binary_search(id).is_ok());
        scaled(present.fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)), n_containers)
    }
}

/// Returns a number that changes when scores may have changed without a change of the node.
pub fn version(pod: Pod<'_>) -> u64 {
    let images = &pod.cluster.images;
    let version = |name| images.get(name).map_or(0, |id| images[id].version);
    let mut hasher = FxHasher::default();
    hasher.write_usize(pod.cluster.nodes_by_name().len());
    pod.class.images.iter().for_each(|name| hasher.write_u64(version(name)));
    hasher.finish()
}

/// Returns the size of an image, scaled by the fraction of nodes that have it. Without scaling, all
/// pods would go where one was.
fn spread_bytes(images: &Images, id: vc_model::ImageId, n_nodes: usize) -> i64 {
    let image = &images[id];
    (image.size_bytes as f64 * (f64::from(image.n_nodes) / n_nodes as f64)) as i64
}

fn scaled(bytes: i64, n_containers: i64) -> i64 {
    let most = MOST_BYTES_PER_CONTAINER.saturating_mul(n_containers);
    match LEAST_BYTES < most {
        true => MAX_SCORE * (bytes.clamp(LEAST_BYTES, most) - LEAST_BYTES) / (most - LEAST_BYTES),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{MIB, scaled};

    #[test]
    fn nodes_93_bytes_between_two_bounds() {
        assert_eq!(scaled(250 * MIB, 1), 23);
        assert_eq!(scaled(250 * MIB, 2), 11);
        assert_eq!(scaled(0, 1), 0);
        assert_eq!(scaled(i64::MAX, 1), 100);
        assert_eq!(scaled(5, 0), 0);
    }
}
