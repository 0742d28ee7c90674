/* A file system that shows a directory of another one, and answers every request late.
 *
 *     latency_fs BACKING MOUNT_POINT [--delay-us N] [--fail OPERATION:ERRNO:EVERY]...
 *                [--fail-name OPERATION:ERRNO:TIMES:NAME]... [--miss TIMES:DIRECTORY/NAME]...
 *                [--only-for "PROGRAM ARGUMENT"] [--without-d-type] [--moving-cookies]
 *                [--type NAME]
 *
 * It stands for a server behind a network: requests wait at the same time, and several mounts of one
 * BACKING are several clients of one server. Runs in the foreground; prints "ready" when mounted.
 * BACKING may be MOUNT_POINT: it is opened before it is covered.
 *
 *   --fail OPERATION:ERRNO:EVERY   each EVERY-th unlink, rmdir, opendir, readdir or getattr fails with
 *                                  this errno (a number), and nothing is done
 *   --fail-name OPERATION:ERRNO:TIMES:NAME
 *                                  the first TIMES of these calls on an entry NAME fail; 0: all of them
 *   --miss TIMES:DIRECTORY/NAME    the first TIMES readings of a directory DIRECTORY omit its entry
 *                                  NAME; 0: all of them
 *   --only-for "PROGRAM ARGUMENT"  the last two options affect only processes with these consecutive
 *                                  words in their command line
 *   --without-d-type               directories do not report the types of their entries
 *   --moving-cookies               the offset of an entry is its position among those that are left, as
 *                                  on servers where reading skips entries after removals
 *   --type NAME                    the type of the file system is fuse.NAME
 *
 * NAME and DIRECTORY are last components of paths.
 *
 * Build: cc -O2 latency_fs.c $(pkg-config --cflags --libs fuse3) -o latency_fs
 */

#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 256, MAX_FAULTS = 16, MAX_MISSES = 8, NAME_BYTES = 256 };

struct fault {
    char operation[16];
    int error;
    long every; /* or 0, and: */
    long times;
    char name[NAME_BYTES];
    atomic_long calls;
};

struct miss {
    long times;
    char directory[NAME_BYTES];
    char name[NAME_BYTES];
    atomic_long readings;
};

/* An open directory; it omits what the current reading misses. */
struct directory {
    DIR *stream;
    int omits[MAX_MISSES];
};

static int backing;
static long delay_us;
static struct fault faults[MAX_FAULTS];
static int fault_count;
static struct miss misses[MAX_MISSES];
static int miss_count;
static char only_for[NAME_BYTES];
static size_t only_for_bytes;
static int without_d_type;
static int moving_cookies;
static char mount_options[128] = "-oallow_other,default_permissions,fsname=latency_fs";

static const char *last_component(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : "";
}

/* Whether --only-for selects the process whose request this is. */
static int is_selected(void)
{
    char path[64], words[4096];
    if (only_for_bytes == 0)
        return 1;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)fuse_get_context()->pid);
    int opened = open(path, O_RDONLY);
    ssize_t length = opened < 0 ? -1 : read(opened, words, sizeof words);
    if (opened >= 0)
        close(opened);
    return length > 0 && memmem(words, (size_t)length, only_for, only_for_bytes) != NULL;
}

static int is_among_first(atomic_long *calls, long times)
{
    return atomic_fetch_add(calls, 1) < times || times == 0;
}

static int fails(struct fault *fault, const char *operation, const char *path)
{
    if (strcmp(fault->operation, operation) != 0)
        return 0;
    if (fault->every)
        return (atomic_fetch_add(&fault->calls, 1) + 1) % fault->every == 0;
    return strcmp(fault->name, last_component(path)) == 0 && is_selected()
           && is_among_first(&fault->calls, fault->times);
}

/* Waits as for an answer; returns the injected error, or 0. */
static int answer(const char *operation, const char *path)
{
    if (delay_us > 0) {
        struct timespec delay = {delay_us / 1000000, delay_us % 1000000 * 1000};
        nanosleep(&delay, NULL);
    }
    for (int number = 0; number < fault_count; number++) {
        if (fails(&faults[number], operation, path))
            return -faults[number].error;
    }
    return 0;
}

/* Waits where no error is injected. */
static void wait_for_answer(void)
{
    answer("", "");
}

static const char *below(const char *path)
{
    return path[1] == '\0' ? "." : path + 1;
}

static int result_of(int result)
{
    return result < 0 ? -errno : 0;
}

static int do_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    int fault = answer("getattr", path);
    if (fault)
        return fault;
    if (file)
        return result_of(fstat((int)file->fh, status));
    return result_of(fstatat(backing, below(path), status, AT_SYMLINK_NOFOLLOW));
}

static int do_readlink(const char *path, char *target, size_t size)
{
    wait_for_answer();
    ssize_t length = readlinkat(backing, below(path), target, size - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    return 0;
}

static int do_mknod(const char *path, mode_t mode, dev_t device)
{
    wait_for_answer();
    return result_of(mknodat(backing, below(path), mode, device));
}

static int do_mkdir(const char *path, mode_t mode)
{
    wait_for_answer();
    return result_of(mkdirat(backing, below(path), mode));
}

static int do_unlink(const char *path)
{
    int fault = answer("unlink", path);
    return fault ? fault : result_of(unlinkat(backing, below(path), 0));
}

static int do_rmdir(const char *path)
{
    int fault = answer("rmdir", path);
    return fault ? fault : result_of(unlinkat(backing, below(path), AT_REMOVEDIR));
}

static int do_symlink(const char *target, const char *path)
{
    wait_for_answer();
    return result_of(symlinkat(target, backing, below(path)));
}

static int do_rename(const char *from, const char *to, unsigned int flags)
{
    wait_for_answer();
    return result_of(renameat2(backing, below(from), backing, below(to), flags));
}

static int do_link(const char *from, const char *to)
{
    wait_for_answer();
    return result_of(linkat(backing, below(from), backing, below(to), 0));
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
    (void)file;
    wait_for_answer();
    return result_of(fchmodat(backing, below(path), mode, 0));
}

static int do_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *file)
{
    (void)file;
    wait_for_answer();
    return result_of(fchownat(backing, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
    (void)file;
    wait_for_answer();
    return result_of(utimensat(backing, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
    wait_for_answer();
    if (file)
        return result_of(ftruncate((int)file->fh, size));
    int opened = openat(backing, below(path), O_WRONLY);
    if (opened < 0)
        return -errno;
    int result = result_of(ftruncate(opened, size));
    close(opened);
    return result;
}

static int do_open(const char *path, struct fuse_file_info *file)
{
    wait_for_answer();
    int opened = openat(backing, below(path), file->flags & ~O_CREAT);
    if (opened < 0)
        return -errno;
    file->fh = (uint64_t)opened;
    return 0;
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
    wait_for_answer();
    int opened = openat(backing, below(path), file->flags | O_CREAT, mode);
    if (opened < 0)
        return -errno;
    file->fh = (uint64_t)opened;
    return 0;
}

static int do_read(const char *path, char *buffer, size_t size, off_t at, struct fuse_file_info *file)
{
    (void)path;
    wait_for_answer();
    ssize_t length = pread((int)file->fh, buffer, size, at);
    return length < 0 ? -errno : (int)length;
}

static int do_write(const char *path, const char *data, size_t size, off_t at,
                    struct fuse_file_info *file)
{
    (void)path;
    wait_for_answer();
    ssize_t length = pwrite((int)file->fh, data, size, at);
    return length < 0 ? -errno : (int)length;
}

static int do_release(const char *path, struct fuse_file_info *file)
{
    (void)path;
    close((int)file->fh);
    return 0;
}

static int do_statfs(const char *path, struct statvfs *status)
{
    (void)path;
    wait_for_answer();
    return result_of(fstatvfs(backing, status));
}

static int do_opendir(const char *path, struct fuse_file_info *file)
{
    int fault = answer("opendir", path);
    if (fault)
        return fault;
    int opened = openat(backing, below(path), O_RDONLY | O_DIRECTORY);
    if (opened < 0)
        return -errno;
    struct directory *directory = calloc(1, sizeof *directory);
    if (!directory || !(directory->stream = fdopendir(opened))) {
        free(directory);
        close(opened);
        return -ENOMEM;
    }
    file->fh = (uint64_t)(uintptr_t)directory;
    return 0;
}

static void begin_reading(struct directory *directory, const char *path)
{
    for (int number = 0; number < miss_count; number++) {
        struct miss *miss = &misses[number];
        directory->omits[number] = strcmp(miss->directory, last_component(path)) == 0
                                   && is_selected()
                                   && is_among_first(&miss->readings, miss->times);
    }
}

static int is_omitted(const struct directory *directory, const char *name)
{
    for (int number = 0; number < miss_count; number++)
        if (directory->omits[number] && strcmp(misses[number].name, name) == 0)
            return 1;
    return 0;
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
    (void)flags;
    int fault = answer("readdir", path);
    if (fault)
        return fault;
    struct directory *directory = (struct directory *)(uintptr_t)file->fh;
    DIR *stream = directory->stream;
    struct dirent *entry;
    if (offset == 0)
        begin_reading(directory, path);
    if (moving_cookies || offset == 0)
        rewinddir(stream);
    else
        seekdir(stream, offset);
    for (off_t position = 1; (entry = readdir(stream)); position++) {
        struct stat status = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
        off_t next = moving_cookies ? position : telldir(stream);
        if (without_d_type)
            status.st_mode = 0;
        if ((moving_cookies && position <= offset) || is_omitted(directory, entry->d_name))
            continue;
        if (fill(buffer, entry->d_name, &status, next, 0))
            break;
    }
    return 0;
}

static int do_releasedir(const char *path, struct fuse_file_info *file)
{
    (void)path;
    struct directory *directory = (struct directory *)(uintptr_t)file->fh;
    closedir(directory->stream);
    free(directory);
    return 0;
}

static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    connection->want &= ~(unsigned)FUSE_CAP_READDIRPLUS;
    connection->want |= connection->capable & FUSE_CAP_PARALLEL_DIROPS;
    connection->max_background = THREADS;
    config->use_ino = 1;
    config->hard_remove = 1;
    config->nullpath_ok = 0;
    printf("ready\n");
    fflush(stdout);
    return NULL;
}

static const struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr,
    .readlink = do_readlink,
    .mknod = do_mknod,
    .mkdir = do_mkdir,
    .unlink = do_unlink,
    .rmdir = do_rmdir,
    .symlink = do_symlink,
    .rename = do_rename,
    .link = do_link,
    .chmod = do_chmod,
    .chown = do_chown,
    .utimens = do_utimens,
    .truncate = do_truncate,
    .open = do_open,
    .create = do_create,
    .read = do_read,
    .write = do_write,
    .release = do_release,
    .statfs = do_statfs,
    .opendir = do_opendir,
    .readdir = do_readdir,
    .releasedir = do_releasedir,
};

static int add_fault(const char *text)
{
    struct fault *fault = &faults[fault_count];
    if (fault_count == MAX_FAULTS
        || sscanf(text, "%15[a-z]:%d:%ld", fault->operation, &fault->error, &fault->every) != 3
        || fault->every < 1)
        return -1;
    fault_count++;
    return 0;
}

static int add_fault_of_name(const char *text)
{
    struct fault *fault = &faults[fault_count];
    if (fault_count == MAX_FAULTS
        || sscanf(text, "%15[a-z]:%d:%ld:%255s", fault->operation, &fault->error, &fault->times,
                  fault->name) != 4
        || fault->times < 0)
        return -1;
    fault->every = 0;
    fault_count++;
    return 0;
}

static int add_miss(const char *text)
{
    struct miss *miss = &misses[miss_count];
    if (miss_count == MAX_MISSES
        || sscanf(text, "%ld:%255[^/]/%255s", &miss->times, miss->directory, miss->name) != 3
        || miss->times < 0)
        return -1;
    miss_count++;
    return 0;
}

/* Words of a command line end with null bytes. */
static int select_processes(const char *text)
{
    only_for_bytes = strlen(text) + 1;
    if (only_for_bytes == 1 || only_for_bytes > sizeof only_for)
        return -1;
    for (size_t at = 0; at < only_for_bytes; at++)
        only_for[at] = text[at] == ' ' ? '\0' : text[at];
    return 0;
}

int main(int count, char *words[])
{
    if (count < 3) {
        fprintf(stderr, "usage: latency_fs BACKING MOUNT_POINT [OPTION]...\n");
        return 2;
    }
    for (int number = 3; number < count; number++) {
        const char *value = number + 1 < count ? words[number + 1] : "";
        if (strcmp(words[number], "--without-d-type") == 0) {
            without_d_type = 1;
        } else if (strcmp(words[number], "--moving-cookies") == 0) {
            moving_cookies = 1;
        } else if (strcmp(words[number], "--delay-us") == 0) {
            delay_us = atol(value);
            number++;
        } else if (strcmp(words[number], "--type") == 0 && strlen(value) < 32) {
            strcat(strcat(mount_options, ",subtype="), value);
            number++;
        } else if ((strcmp(words[number], "--fail") == 0 && add_fault(value) == 0)
                   || (strcmp(words[number], "--fail-name") == 0 && add_fault_of_name(value) == 0)
                   || (strcmp(words[number], "--only-for") == 0 && select_processes(value) == 0)
                   || (strcmp(words[number], "--miss") == 0 && add_miss(value) == 0)) {
            number++;
        } else {
            fprintf(stderr, "latency_fs: %s: unknown option or value\n", words[number]);
            return 2;
        }
    }
    backing = open(words[1], O_PATH | O_DIRECTORY);
    if (backing < 0) {
        perror(words[1]);
        return 1;
    }
    umask(0);
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    fuse_opt_add_arg(&args, words[0]);
    fuse_opt_add_arg(&args, mount_options);
    struct fuse *fuse = fuse_new(&args, &operations, sizeof operations, NULL);
    if (!fuse || fuse_mount(fuse, words[2]) != 0)
        return 1;
    fuse_set_signal_handlers(fuse_get_session(fuse));
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, THREADS);
    fuse_loop_cfg_set_idle_threads(config, THREADS);
    fuse_loop_cfg_set_clone_fd(config, 0);
    int result = fuse_loop_mt(fuse, config);
    fuse_unmount(fuse);
    fuse_destroy(fuse);
    return result == 0 ? 0 : 1;
}
