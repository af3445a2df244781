/* Preloaded: programs that send SCSI commands to a character node by SG_IO reach an iSCSI target instead.
 * SGIO_NODE is the node (any character device), SGIO_URL the target's logical unit. For tests: no kernel support is needed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct iscsi_context *session;
static int lun;
static char ours[1024];

static int is_node(const char *path) {
	const char *node = getenv("SGIO_NODE");
	return node && strcmp(path, node) == 0;
}

static struct iscsi_context *connected(void) {
	char name[128];
	if (session)
		return session;
	snprintf(name, sizeof name, "iqn.2026-01.smrlab:sgio-%d", getpid());
	struct iscsi_context *iscsi = iscsi_create_context(name);
	struct iscsi_url *url = iscsi ? iscsi_parse_full_url(iscsi, getenv("SGIO_URL")) : NULL;
	if (!url)
		return NULL;
	iscsi_set_targetname(iscsi, url->target);
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	lun = url->lun;
	if (iscsi_full_connect_sync(iscsi, url->portal, lun) != 0)
		return NULL;
	iscsi_destroy_url(url);
	return session = iscsi;
}

static int command(sg_io_hdr_t *h) {
	struct iscsi_context *iscsi = connected();
	if (!iscsi) {
		errno = ENODEV;
		return -1;
	}
	int direction = h->dxfer_direction == SG_DXFER_TO_DEV ? SCSI_XFER_WRITE
		: h->dxfer_direction == SG_DXFER_NONE ? SCSI_XFER_NONE : SCSI_XFER_READ;
	struct scsi_task *task = scsi_create_task(h->cmd_len, h->cmdp, direction, h->dxfer_len);
	struct iscsi_data out = {.size = h->dxfer_len, .data = h->dxferp};
	if (!task || !iscsi_scsi_command_sync(iscsi, lun, task, direction == SCSI_XFER_WRITE ? &out : NULL)) {
		errno = EIO;
		return -1;
	}
	h->status = task->status & 0xff;
	h->masked_status = h->status >> 1 & 0x1f;
	h->info = h->status ? SG_INFO_CHECK : SG_INFO_OK;
	h->host_status = h->driver_status = h->sb_len_wr = 0;
	h->resid = 0;
	if (h->status == SCSI_STATUS_CHECK_CONDITION && task->datain.size > 2) {
		/* Two bytes of length, then sense data. */
		unsigned n = task->datain.size - 2;
		h->sb_len_wr = n < h->mx_sb_len ? n : h->mx_sb_len;
		memcpy(h->sbp, task->datain.data + 2, h->sb_len_wr);
		h->driver_status = 0x08;
	} else if (direction == SCSI_XFER_READ) {
		unsigned n = (unsigned)task->datain.size < h->dxfer_len ? (unsigned)task->datain.size : h->dxfer_len;
		memcpy(h->dxferp, task->datain.data, n);
		h->resid = h->dxfer_len - n;
	}
	scsi_free_scsi_task(task);
	return 0;
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
