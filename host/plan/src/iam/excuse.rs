//! Permissions that a role may lack without holding its add-on: an add-on that runs goes on when a newer version of this program asks more of its
//! role than was asked when it was installed. Whoever brings another role, or asks for more himself, is held to all of it.

/// Actions for whose lack a role is excused. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excused {
    /// Those that it lacked when more was asked of it for the first time.
    pub these: Vec<String>,
    /// More is asked for the first time now: all that was not asked for before. What was is empty where nobody wrote it down.
    pub all_but: Option<Vec<String>>,
}

impl Excused {
    /// Whether the lack of this action is excused.
    pub fn covers(&self, action: &str) -> bool {
        let has = |list: &Vec<String>| list.iter().any(|it| it.eq_ignore_ascii_case(action));
        has(&self.these) || self.all_but.as_ref().is_some_and(|asked| !has(asked))
    }

    /// What is to be excused from now on. `lacks` is what the role was found to lack of it; `None` while that is not known.
    pub fn from_now_on(&self, asked: &[String], lacks: Option<&[String]>) -> Vec<String> {
        match lacks {
            Some(lacks) => lacks.to_vec(),
            None => asked.iter().filter(|it| self.covers(it)).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn what_was_asked_before_is_never_excused() {
        let upgraded = Excused { these: vec![], all_but: Some(texts(&["ec2:a"])) };
        assert!(!upgraded.covers("ec2:a") && !upgraded.covers("EC2:A"));
        assert!(upgraded.covers("ec2:b"));
        assert!(Excused { these: texts(&["ec2:b"]), all_but: None }.covers("ec2:b"));
        assert!(!Excused::default().covers("ec2:b"));
    }

    #[test]
    fn what_could_not_be_read_stays_excused() {
        let upgraded = Excused { these: vec![], all_but: Some(texts(&["ec2:a"])) };
        let asked = texts(&["ec2:a", "ec2:b", "ec2:c"]);
        assert_eq!(upgraded.from_now_on(&asked, None), texts(&["ec2:b", "ec2:c"]));
        assert_eq!(upgraded.from_now_on(&asked, Some(&texts(&["ec2:c"]))), texts(&["ec2:c"]));
    }
}
