// What a sleeping thread waits in, by the name of its innermost function.

export const WAITS = ["lock", "io", "poll", "sleep", "other"] as const;
export type Wait = (typeof WAITS)[number];

// The first line that matches says it. Names are bare: no path, no leading underscores, no versions.
const TABLE: [Wait, RegExp][] = [
  ["lock", /^(futex|do_futex|lll_(un)?lock|pthread_(mutex|cond|rwlock|barrier|spin|(timed|clock)?join)|(new_)?sem_(wait|timed|clock)|mtx_|cnd_|thrd_join|park(_timeout|_internal)?$|flock$)/],
  ["poll", /^(p?poll(_chk)?$|p?select$|epoll_p?wait2?$|kqueue|kevent)/],
  ["sleep", /^(clock_)?nanosleep|^(u?sleep|thrd_sleep)$/],
  ["io", /^(p?(read|write)v?2?|f(read|write)|readlink|(recv|send)(from|to|m?msg)?|accept4?|connect|open(at)?2?|creat|close|f(data)?sync|sync(_file_range|fs)?|splice|tee|sendfile|copy_file_range|fallocate|getdents|ioctl|io_(uring_enter|getevents)|msgrcv|msgsnd|mq_(timed)?(receive|send))(_chk|$)/],
];

// Functions that only enter the kernel: their caller says what for.
const ENTRY = /^(syscall|syscall_cancel(_arch)?|internal_syscall_cancel|kernel_vsyscall|rt_sigreturn)$/;

// `__GI___futex_abstimed_wait_cancelable64` is `futex_abstimed_wait_cancelable`.
function bare(name: string): string {
  const plain = name.replace(/@.*$/, "").replace(/([^:<])(::)?<.*$/, "$1");
  return plain.slice(plain.lastIndexOf(":") + 1)
    .replace(/^_+(GI_+)?(libc_+)?/, "").replace(/_+(nocancel|cancelable)?(_?64|_time64)?$/, "").replace(/64$/, "");
}

export function isEntry(name: string): boolean {
  return ENTRY.test(bare(name));
}

// The number of a wait in `WAITS`.
export function waitOf(name: string): number {
  const plain = bare(name);
  return WAITS.indexOf(TABLE.find(([, names]) => names.test(plain))?.[0] ?? "other");
}
