// What a sleeping thread waits in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

const { isEntry, waitOf, WAITS } = await module("kernel/waits.ts");

const KNOWN = {
  lock: [
    "futex", "__GI___lll_lock_wait", "__lll_lock_wait_private", "__futex_abstimed_wait_common", "__futex_abstimed_wait_cancelable64",
    "pthread_cond_wait@@GLIBC_2.3.2", "___pthread_mutex_lock", "__pthread_clockjoin_ex", "sem_timedwait", "__new_sem_wait_slow64", "do_futex_wait",
    "std::sys::pal::unix::futex::futex_wait", "std::thread::park", "__GI___futex_abstimed_wait_cancelable64", "mtx_lock", "flock",
  ],
  io: [
    "read", "__GI___libc_read", "__libc_recv", "recvfrom", "__recvmsg", "sendto", "accept4", "__libc_connect", "fsync", "pread64", "writev",
    "__read_nocancel", "<rustix::Fd as Read>::read", "openat64", "io_uring_enter", "ioctl", "__recv_chk",
  ],
  poll: ["poll", "__GI___poll", "ppoll", "select", "__select64", "epoll_wait", "epoll_pwait2", "__poll_chk"],
  sleep: ["nanosleep", "__GI___clock_nanosleep", "clock_nanosleep_time64", "usleep", "sleep"],
  other: ["", "wait4", "pause", "sigtimedwait", "serve", "reader", "readable", "parking", "sleep_until_noon", "pollen", "[no stack]", "serde::de::Deserialize<read>"],
};

for (const wait of WAITS) {
  test(`names of ${wait}`, () => {
    for (const name of KNOWN[wait]) assert.equal(WAITS[waitOf(name)], wait, name);
  });
}

test("what only enters the kernel says nothing", () => {
  for (const name of ["syscall", "__syscall_cancel_arch", "__internal_syscall_cancel"]) assert.ok(isEntry(name), name);
  for (const name of ["read", "futex", "my_syscall_wrapper"]) assert.ok(!isEntry(name), name);
});
