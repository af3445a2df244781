/* Keeps reads or writes of an iSCSI disk in flight, one behind the other, and prints how many were done in how many seconds.
 *   iscsi_load URL read|write BYTES DEPTH SECONDS END [zoned]
 * From block 0 to END (in blocks of 512 bytes), again and again; with `zoned` all zones are reset before each pass of writes.
 * For disks of type 14h, which qemu-img bench and iscsi-perf do not take. */
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct iscsi_context *session;
static int lun, writes, zoned;
static unsigned bytes, in_flight;
static uint64_t at, end, done;
static unsigned char *buffer;

static void fail(const char *what) {
	fprintf(stderr, "iscsi_load: %s: %s\n", what, session ? iscsi_get_error(session) : "");
	exit(1);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void ended(struct iscsi_context *iscsi, int status, void *task, void *unused) {
	(void)iscsi, (void)unused;
	if (status != SCSI_STATUS_GOOD)
		fail("a command failed");
	scsi_free_scsi_task(task);
	in_flight--;
	done++;
}

static void send_one(void) {
	struct scsi_task *task = writes
		? iscsi_write16_task(session, lun, at, buffer, bytes, 512, 0, 0, 0, 0, 0, ended, NULL)
		: iscsi_read16_task(session, lun, at, bytes, 512, 0, 0, 0, 0, 0, ended, NULL);
	if (!task)
		fail("a command was not sent");
	/* What is read goes where it is to be, and is not collected in pieces. */
	if (!writes)
		scsi_task_add_data_in_buffer(task, bytes, buffer);
	in_flight++;
	at += bytes / 512;
}

static void reset(void) {
	unsigned char cdb[16] = {0x94, 0x04, [14] = 1};
	struct scsi_task *task = scsi_create_task(16, cdb, SCSI_XFER_NONE, 0);
	if (!task || !iscsi_scsi_command_sync(session, lun, task, NULL) || task->status != SCSI_STATUS_GOOD)
		fail("zones were not reset");
	scsi_free_scsi_task(task);
}

int main(int argc, char **argv) {
	if (argc < 7) {
		fprintf(stderr, "usage: iscsi_load URL read|write BYTES DEPTH SECONDS END [zoned]\n");
		return 2;
	}
	session = iscsi_create_context("iqn.2026-01.smrlab:load");
	struct iscsi_url *url = session ? iscsi_parse_full_url(session, argv[1]) : NULL;
	if (!url)
		fail("the URL");
	writes = strcmp(argv[2], "write") == 0;
	bytes = atoi(argv[3]);
	unsigned depth = atoi(argv[4]);
	double seconds = atof(argv[5]);
	end = strtoull(argv[6], NULL, 10);
	zoned = argc > 7 && strcmp(argv[7], "zoned") == 0;
	lun = url->lun;
	buffer = malloc(bytes);
	memset(buffer, 0x5a, bytes);
	iscsi_set_targetname(session, url->target);
	iscsi_set_session_type(session, ISCSI_SESSION_NORMAL);
	if (iscsi_full_connect_sync(session, url->portal, lun) != 0)
		fail("the login");
	if (writes && zoned)
		reset();
	double began = now();
	int over = 0;
	while (!over || in_flight) {
		over = over || now() - began >= seconds;
		if (at + bytes / 512 > end && !in_flight) {
			at = 0;
			if (writes && zoned)
				reset();
		}
		while (!over && in_flight < depth && at + bytes / 512 <= end)
			send_one();
		struct pollfd p = {.fd = iscsi_get_fd(session), .events = iscsi_which_events(session)};
		if (in_flight && (poll(&p, 1, 10000) < 1 || iscsi_service(session, p.revents) < 0))
			fail("the connection");
	}
	printf("%llu %.6f\n", (unsigned long long)done, now() - began);
	return 0;
}
