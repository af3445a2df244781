/* Preloaded: programs that send SCSI commands to a character node by SG_IO reach an iSCSI target instead.
 * SGIO_NODE is the node (any character device), SGIO_URL the target's logical unit. For tests: no kernel support is needed.
 * SGIO_COMMANDS is sgio_iscsi.c, compiled: most of what a shell script starts sends no command and need not load libiscsi. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static char ours[1024];

static int is_node(const char *path) {
	const char *node = getenv("SGIO_NODE");
	return node && strcmp(path, node) == 0;
}

static int command(sg_io_hdr_t *h) {
	static int (*loaded)(sg_io_hdr_t *);
	if (!loaded) {
		void *library = dlopen(getenv("SGIO_COMMANDS"), RTLD_NOW);
		loaded = library ? dlsym(library, "sgio_command") : NULL;
	}
	if (!loaded) {
		errno = ENODEV;
		return -1;
	}
	return loaded(h);
}

static int opened(const char *path, int fd) {
	if (fd >= 0 && fd < (int)sizeof ours)
		ours[fd] = is_node(path);
	return fd;
}

#define OPEN(name)                                                                  \
	int name(const char *path, int flags, ...) {                                \
		static int (*real)(const char *, int, ...);                         \
		va_list args;                                                       \
		va_start(args, flags);                                              \
		int mode = va_arg(args, int);                                       \
		va_end(args);                                                       \
		if (!real)                                                          \
			real = dlsym(RTLD_NEXT, #name);                             \
		return opened(path, real(path, is_node(path) ? O_RDWR : flags, mode)); \
	}
OPEN(open)
OPEN(open64)

/* What programs call that were built with checks of their arguments. */
#define OPEN_2(name, plain) \
	int name(const char *path, int flags) { return plain(path, flags, 0); }
OPEN_2(__open_2, open)
OPEN_2(__open64_2, open64)

int ioctl(int fd, unsigned long request, ...) {
	static int (*real)(int, unsigned long, ...);
	va_list args;
	va_start(args, request);
	void *at = va_arg(args, void *);
	va_end(args);
	if (!real)
		real = dlsym(RTLD_NEXT, "ioctl");
	if (fd < 0 || fd >= (int)sizeof ours || !ours[fd])
		return real(fd, request, at);
	switch (request) {
	case SG_IO:
		return command(at);
	case SG_GET_VERSION_NUM:
		*(int *)at = 30536;
		return 0;
	case SG_GET_SG_TABLESIZE:
		*(int *)at = 2048;
		return 0;
	default:
		errno = ENOTTY;
		return -1;
	}
}
