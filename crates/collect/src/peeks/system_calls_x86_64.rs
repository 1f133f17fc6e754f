//! Names of the system calls in which threads sleep, by number (Linux, x86-64).
//!
//! Other calls are shown by number: they sleep only while a page or a device is slow.

/// Name of the call, or `system call N`.
pub(crate) fn name(number: i64) -> String {
    if number == -1 {
        return "the kernel, outside of a system call".to_owned();
    }
    match CALLS.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("system call {number}"),
    }
}

const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_open, "open"),
    (libc::SYS_close, "close"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_pause, "pause"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_semop, "semop"),
    (libc::SYS_msgsnd, "msgsnd"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_tee, "tee"),
    (libc::SYS_vmsplice, "vmsplice"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_timerfd_settime, "timerfd_settime"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_brk, "brk"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_exit, "exit"),
    (libc::SYS_exit_group, "exit_group"),
    (libc::SYS_clone, "clone"),
    (libc::SYS_vfork, "vfork"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_mq_timedsend, "mq_timedsend"),
    (libc::SYS_mq_timedreceive, "mq_timedreceive"),
    (libc::SYS_inotify_add_watch, "inotify_add_watch"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_epoll_pwait2, "epoll_pwait2"),
    (libc::SYS_futex_waitv, "futex_waitv"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_getrandom, "getrandom"),
    (libc::SYS_preadv2, "preadv2"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_restart_syscall, "restart_syscall"),
    (libc::SYS_ptrace, "ptrace"),
    (libc::SYS_userfaultfd, "userfaultfd"),
];

#[cfg(test)]
mod tests {
    #[test]
    fn calls_have_names_and_others_numbers() {
        assert_eq!(super::name(202), "futex");
        assert_eq!(super::name(232), "epoll_wait");
        assert_eq!(super::name(39), "system call 39");
    }
}
