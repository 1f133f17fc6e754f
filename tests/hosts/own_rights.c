// A root program that changes the rights of its thread, then the group of all threads. `own_rights HOW`: `keep`, as setpriv(1) does,
// `bits`, `bare` (a system call of this thread alone) or `bare-capset`. It prints what it has got.
#define _GNU_SOURCE
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern int capset(struct __user_cap_header_struct *, struct __user_cap_data_struct *);

enum { NOBODY = 65534 };

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "keep";
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    data[0].effective = data[0].permitted = 1 << CAP_SETGID | 1 << CAP_SETUID;
    int user = -1;
    if (!strcmp(how, "bits")) {
        if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)) return 1;
        user = setresuid(NOBODY, NOBODY, NOBODY);
    } else if (!strcmp(how, "bare")) {
        user = (int)syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY);
    } else {
        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)) return 1;
        user = setresuid(NOBODY, NOBODY, NOBODY);
        if (strcmp(how, "keep") ? (int)syscall(SYS_capset, &header, data) : capset(&header, data)) return 2;
    }
    int group = setresgid(NOBODY, NOBODY, NOBODY);
    printf("%s: user %d, group %d, now %d and %d\n", how, user, group, (int)getuid(), (int)getgid());
    return 0;
}
