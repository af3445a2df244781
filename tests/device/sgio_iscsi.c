/* What `sgio.c` loads when a program opens its node: SG_IO over libiscsi. */
#include <errno.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <scsi/sg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct iscsi_context *session;
static int lun;

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
	/* Without a look whether the unit is ready: it is for the program to ask. */
	if (iscsi_connect_sync(iscsi, url->portal) != 0 || iscsi_login_sync(iscsi) != 0)
		return NULL;
	iscsi_destroy_url(url);
	return session = iscsi;
}

/* Copies the pieces of a transfer to `flat`, or from it. */
static void move(const sg_io_hdr_t *h, unsigned char *flat, unsigned n, int out) {
	sg_iovec_t *piece = h->dxferp;
	for (int i = 0; i < h->iovec_count && n > 0; i++) {
		unsigned len = piece[i].iov_len < n ? piece[i].iov_len : n;
		memcpy(out ? flat : piece[i].iov_base, out ? piece[i].iov_base : flat, len);
		flat += len;
		n -= len;
	}
}

static int sent(sg_io_hdr_t *h);

int sgio_command(sg_io_hdr_t *h) {
	if (!h->iovec_count)
		return sent(h);
	sg_io_hdr_t plain = *h;
	plain.dxferp = calloc(1, h->dxfer_len + 1);
	move(h, plain.dxferp, h->dxfer_len, 1);
	int done = sent(&plain);
	if (h->dxfer_direction == SG_DXFER_FROM_DEV)
		move(h, plain.dxferp, h->dxfer_len - plain.resid, 0);
	free(plain.dxferp);
	plain.dxferp = h->dxferp;
	*h = plain;
	return done;
}

static int sent(sg_io_hdr_t *h) {
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
