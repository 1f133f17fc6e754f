//! How a command is shown: the name of its program and its arguments.

use crate::Process;
use crate::frame::file_name;

impl Process {
    /// What it runs, as its command line or its own title says: `make -j4`, `nginx: worker process`. The program is named
    /// without its folder.
    pub fn command(&self) -> String {
        match &self.arguments[..] {
            [] => file_name(&self.exe).to_owned(),
            [first, ..] if **first == *self.exe => {
                let name = file_name(first).to_owned();
                self.arguments[1..].iter().fold(name, |command, word| command + " " + word)
            }
            words => command_text(words),
        }
    }

    /// The title that it has given itself: `nginx: worker process`; otherwise the name of its program.
    pub fn title(&self) -> String {
        self.own_title().unwrap_or_else(|| file_name(&self.exe).to_owned())
    }

    /// The title that it has given itself, if it has. Such a title is in the first word of its command line.
    pub fn own_title(&self) -> Option<String> {
        let first = self.arguments.first().filter(|first| first.contains(' ') && ***first != *self.exe)?;
        Some(command_text(std::slice::from_ref(first)))
    }
}

/// A command line as one text. The program is named without its folder: `rg -c x` for `/usr/bin/rg`, `-c` and `x`.
///
/// A process that has given itself a title has it in the first word, as the whole or as a part: such a title stays as
/// it is.
pub fn command_text(words: &[String]) -> String {
    let [first, rest @ ..] = words else { return String::new() };
    let (program, title) = first.split_once(' ').map_or((first.as_str(), None), |(a, b)| (a, Some(b)));
    let name = file_name(program);
    let name = if name.is_empty() { program } else { name };
    let words = title.into_iter().chain(rest.iter().map(String::as_str));
    words.fold(name.to_owned(), |command, word| command + " " + word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_no_folder_and_titles_stay() {
        let text = |words: &[&str]| command_text(&words.iter().map(|w| w.to_string()).collect::<Vec<_>>());
        assert_eq!(text(&["/usr/bin/rg", "-c", "/x/y"]), "rg -c /x/y");
        assert_eq!(
            text(&["nginx: master process /usr/sbin/nginx -g x"]),
            "nginx: master process /usr/sbin/nginx -g x"
        );
        assert_eq!(text(&["/usr/bin/redis-server 127.0.0.1:6379"]), "redis-server 127.0.0.1:6379");
        assert_eq!(text(&["postgres: 15/main: walwriter "]), "postgres: 15/main: walwriter ");
        assert_eq!([text(&[]), text(&["dir/"]), text(&["-bash"])], ["", "dir/", "-bash"]);
        let process = Process { exe: "/home/my dir/app".into(), ..Process::default() };
        assert_eq!(process.command(), "app");
        let process = Process { arguments: vec!["/home/my dir/app".into(), "-x".into()], ..process };
        assert_eq!(process.command(), "app -x");
        assert_eq!((process.title(), process.own_title()), ("app".into(), None));
        let titled = Process { arguments: vec!["nginx: worker process".into()], ..process };
        assert_eq!((titled.command(), titled.title()), (titled.title(), "nginx: worker process".into()));
    }
}
