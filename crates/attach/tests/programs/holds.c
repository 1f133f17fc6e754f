// Maps a file, works, gives it back, and checks that nobody else has it in use. Again and again, until its input ends.
//
// `holds CASE [FOLDER]`: prints "ready", and at its end how often the check failed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 65536 };

static void work(void) {
    for (volatile int i = 0; i < 3000000; i++) {}
}

// A mapped file at whose end the mapping and the descriptor are gone.
static char *map(int file, int protection, int flags) {
    if (file < 0 || ftruncate(file, BYTES) != 0) return MAP_FAILED;
    return mmap(0, BYTES, protection, flags, file, 0);
}

static void map_work_close(int file, int protection, int flags) {
    char *memory = map(file, protection, flags);
    if (memory == MAP_FAILED) abort();
    if (protection & PROT_WRITE) memory[0] = 1;
    work();
    munmap(memory, BYTES);
    close(file);
}

static int open_new(const char *path) { return open(path, O_RDWR | O_CREAT, 0600); }

static int seal(void) {
    int file = memfd_create("sealed", MFD_ALLOW_SEALING);
    char *memory = map(file, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (memory == MAP_FAILED) abort();
    memory[0] = 1;
    work();
    munmap(memory, BYTES);
    int failed = fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) != 0;
    close(file);
    return failed;
}

static int lock(const char *path, int flags) {
    int file = open_new(path);
    if (flock(file, LOCK_EX | LOCK_NB) != 0) return 1;
    map_work_close(file, flags == MAP_SHARED ? PROT_READ | PROT_WRITE : PROT_READ, flags);
    file = open_new(path);
    int failed = flock(file, LOCK_EX | LOCK_NB) != 0;
    close(file);
    return failed;
}

static int description_lock(const char *path) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open_new(path);
    if (fcntl(file, F_OFD_SETLK, &whole) != 0) return 1;
    map_work_close(file, PROT_READ | PROT_WRITE, MAP_SHARED);
    file = open_new(path);
    int failed = fcntl(file, F_OFD_SETLK, &whole) != 0;
    close(file);
    return failed;
}

static int lease(const char *path) {
    map_work_close(open_new(path), PROT_READ | PROT_WRITE, MAP_SHARED);
    int file = open_new(path);
    int failed = fcntl(file, F_SETLEASE, F_WRLCK) != 0;
    close(file);
    return failed;
}

static int attached(void) {
    struct shmid_ds state;
    int id = shmget(IPC_PRIVATE, BYTES, 0600 | IPC_CREAT);
    char *memory = shmat(id, 0, 0);
    if (memory == (char *)-1) abort();
    memory[0] = 1;
    work();
    int failed = shmctl(id, IPC_STAT, &state) != 0 || state.shm_nattch != 1;
    shmdt(memory);
    failed |= shmctl(id, IPC_STAT, &state) != 0 || state.shm_nattch != 0;
    shmctl(id, IPC_RMID, 0);
    return failed;
}

// A file system in which a file is mapped, or which is the current folder.
static int mounted(const char *folder, int is_current) {
    char path[4096];
    mkdir(folder, 0700);
    if (mount("none", folder, "tmpfs", 0, 0) != 0) abort();
    snprintf(path, sizeof path, "%s/file", folder);
    if (is_current) {
        if (chdir(folder) != 0) abort();
        work();
        if (chdir("/") != 0) abort();
    } else {
        map_work_close(open_new(path), PROT_READ, MAP_PRIVATE);
    }
    int failed = umount(folder) != 0;
    if (failed) umount2(folder, MNT_DETACH);
    rmdir(folder);
    return failed;
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "", *path = count > 2 ? arguments[2] : "";
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int failed = 0, rounds = 0;
    puts("ready");
    fflush(stdout);
    for (; poll(&input, 1, 0) == 0; rounds++) {
        if (!strcmp(which, "seal")) failed += seal();
        else if (!strcmp(which, "lock")) failed += lock(path, MAP_SHARED);
        else if (!strcmp(which, "read")) failed += lock(path, MAP_PRIVATE);
        else if (!strcmp(which, "description")) failed += description_lock(path);
        else if (!strcmp(which, "lease")) failed += lease(path);
        else if (!strcmp(which, "attached")) failed += attached();
        else if (!strcmp(which, "mounted")) failed += mounted(path, 0);
        else if (!strcmp(which, "current")) failed += mounted(path, 1);
        else return 2;
    }
    unlink(path);
    printf("%s: %d failed%s\n", which, failed, rounds == 0 ? ", none tried" : "");
    return 0;
}
