//! Container images on nodes. Each image name is stored once, with the number of nodes in the
//! cluster that have it. Specification: plugins-nodes.md 7.9.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::ids::{ImageId, Table};
use crate::reads::{self, Read};

/// The image names that nodes list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Images {
    rows: Table<ImageId, Image>,
    by_name: CopyOnWrite<FxHashMap<Arc<str>, ImageId>>,
    /// Number of changes so far; the source of [`Image::version`].
    clock: u64,
}

copy_on_write_members! { Images: shared by_name, rows; copied clock; }

/// An image by one of its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Name with tag or digest.
    pub name: Arc<str>,
    /// Size that the first node with the image has reported.
    pub size_bytes: i64,
    /// Number of nodes that have the image.
    pub n_nodes: u32,
    /// Stamp of the last change of this image. No other image ever has the same stamp.
    pub version: u64,
}

impl Images {
    /// Returns the image with a normalised name. Returns `None` if no node has it.
    pub fn get(&self, name: &str) -> Option<ImageId> {
        reads::note(Read::OtherObjects);
        self.by_name.get().get(name).copied()
    }

    /// Returns the ids of the images that a node lists, sorted. Each is counted for the node until
    /// [`Images::release`].
    pub(crate) fn acquire(&mut self, listed: &[(Arc<str>, i64)]) -> Vec<ImageId> {
        let mut ids = Vec::with_capacity(listed.len());
        for (name, size_bytes) in listed {
            let id = self.by_name.get().get(name).copied().unwrap_or_else(|| {
                let row =
                    Image { name: name.clone(), size_bytes: *size_bytes, n_nodes: 0, version: 0 };
                let id = self.rows.insert(row);
                self.by_name.get_mut().insert(name.clone(), id);
                id
            });
            if !ids.contains(&id) {
                self.clock += 1;
                self.rows[id].n_nodes += 1;
                self.rows[id].version = self.clock;
                ids.push(id);
            }
        }
        ids.sort_unstable();
        ids
    }

    /// Removes the images of a node from the counts.
    pub(crate) fn release(&mut self, ids: &[ImageId]) {
        for &id in ids {
            self.clock += 1;
            self.rows[id].n_nodes -= 1;
            self.rows[id].version = self.clock;
            if self.rows[id].n_nodes == 0
                && let Some(image) = self.rows.remove(id)
            {
                self.by_name.get_mut().remove(&image.name);
            }
        }
    }

    pub(crate) fn recycle(&mut self) {
        self.rows.recycle();
    }

    /// Returns all images, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ImageId, &Image)> {
        self.rows.iter()
    }
}

impl std::ops::Index<ImageId> for Images {
    type Output = Image;
    fn index(&self, id: ImageId) -> &Image {
        &self.rows[id]
    }
}

/// Returns the name by which nodes list an image. `:latest` is appended if the image has no tag.
pub(crate) fn normalized(image: &Arc<str>) -> Arc<str> {
    let after_path = image.rsplit('/').next().unwrap_or_default();
    match after_path.contains(':') {
        true => image.clone(),
        false => format!("{image}:latest").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Images, normalized};

    #[test]
    fn nodes_93_names_without_tag_mean_the_latest() {
        for (image, expected) in [
            ("nginx", "nginx:latest"),
            ("nginx:1.25", "nginx:1.25"),
            ("registry:5000/a/b", "registry:5000/a/b:latest"),
            ("registry:5000/a/b:c", "registry:5000/a/b:c"),
            ("a@sha256:0", "a@sha256:0"),
        ] {
            assert_eq!(&*normalized(&image.into()), expected);
        }
    }

    #[test]
    fn the_first_node_says_the_size_until_no_node_has_the_image() {
        let mut images = Images::default();
        let list = |size| [("a:1".into(), size), ("b:1".into(), 7), ("a:1".into(), 9)];
        let first = images.acquire(&list(5));
        let second = images.acquire(&list(6));
        let a = images.get("a:1").unwrap();
        assert_eq!((images[a].size_bytes, images[a].n_nodes, first.len()), (5, 2, 2));
        images.release(&first);
        assert_eq!((images[a].size_bytes, images[a].n_nodes), (5, 1));
        images.release(&second);
        assert_eq!(images.get("a:1"), None);
        let again = images.acquire(&list(6));
        assert_eq!(images[again[0].min(again[1])].n_nodes, 1);
    }
}
