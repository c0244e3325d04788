//! A list that copies of a snapshot have in common. It is copied when one of them changes it, and not before:
//! snapshots follow one another quickly, and most of what they hold is the same. It behaves as a [`Vec`] in
//! everything else.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A list that its copies share until one of them is changed. Cheap to clone.
pub struct Shared<T>(Arc<Vec<T>>);

impl<T> Shared<T> {
    /// Whether both are the same list: neither was changed since one was cloned from the other. Lists that
    /// are equal by chance may be two.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Deref for Shared<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    /// Copies the list if somebody else has it too.
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Arc::new(list))
    }
}

impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().collect()))
    }
}

impl<'a, T> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_list_until_one_of_both_changes() {
        let one = Shared::from(vec![1, 2]);
        let mut other = one.clone();
        assert!(one.is_same(&other));
        other.push(3);
        assert!(!one.is_same(&other));
        assert_eq!((one.as_slice(), other.as_slice()), ([1, 2].as_slice(), [1, 2, 3].as_slice()));
    }

    #[test]
    fn a_list_of_ones_own_is_changed_in_place() {
        let mut list = Shared::from(vec![1]);
        let before = list.as_ptr();
        list[0] = 2;
        assert_eq!((list.as_ptr(), list[0]), (before, 2));
    }
}
