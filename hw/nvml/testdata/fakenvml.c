// A management library of three GPUs that are none: an NVLink pair, and a third across
// sockets. Of two of them a process computes. OLD leaves out what old libraries lack,
// BROKEN says that the driver is not loaded.
#include <stdio.h>
#include <string.h>

typedef struct { int index; } device;
static device devices[3] = {{0}, {1}, {2}};
typedef struct {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char address[32];
} pci_info;

#ifdef BROKEN
int nvmlInit_v2(void) { return 9; }
#else
int nvmlInit_v2(void) { return 0; }
#endif
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "an error"; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "580.65.06"); return 0; }
int nvmlSystemGetCudaDriverVersion(int *v) { *v = 13000; return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **d) {
	if (i > 2) return 2;
	*d = &devices[i];
	return 0;
}
static void uuid(device *d, char *s, unsigned n) { snprintf(s, n, "GPU-%d", d->index); }
int nvmlDeviceGetHandleByUUID(const char *s, device **d) {
	char own[96];
	for (int i = 0; i < 3; i++) {
		uuid(&devices[i], own, sizeof own);
		if (!strcmp(s, own)) { *d = &devices[i]; return 0; }
	}
	return 6;
}
int nvmlDeviceGetName(device *d, char *s, unsigned n) { snprintf(s, n, "NVIDIA H100 PCIe"); return 0; }
int nvmlDeviceGetUUID(device *d, char *s, unsigned n) { uuid(d, s, n); return 0; }
int nvmlDeviceGetCudaComputeCapability(device *d, int *a, int *b) { *a = 9; *b = 0; return 0; }
int nvmlDeviceGetMemoryInfo(device *d, unsigned long long *m) { m[0] = 85520809984ull + d->index; m[1] = 1; m[2] = 2; return 0; }
static int pci(int i, pci_info *p) {
	memset(p, 0xff, sizeof *p);
	p->domain = 1; p->bus = 0x10 + i; p->device = 2;
	return 0;
}
int nvmlDeviceGetPciInfo_v3(device *d, pci_info *p) { return pci(d->index, p); }
int nvmlDeviceGetMaxClockInfo(device *d, int kind, unsigned *v) { *v = kind == 1 ? 1755 : kind == 2 ? 1593 : 0; return 0; }
#ifndef OLD
int nvmlDeviceGetNumGpuCores(device *d, unsigned *v) { *v = 14592; return 0; }
int nvmlDeviceGetMemoryBusWidth(device *d, unsigned *v) { *v = 5120; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(device *d, unsigned long long *v) { *v = 4; return 0; }
#else
int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *v) { *v = 8; return 0; }
#endif
int nvmlDeviceGetMaxPcieLinkGeneration(device *d, unsigned *v) { *v = 5; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(device *d, unsigned *v) { if (d->index == 2) return 3; *v = 16; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(device *d, unsigned *v) { *v = 350000; return 0; }
int nvmlDeviceGetTopologyCommonAncestor(device *a, device *b, int *level) { *level = a->index == 2 || b->index == 2 ? 50 : 20; return 0; }
int nvmlDeviceGetP2PStatus(device *a, device *b, int what, int *status) { *status = what == 2 && a->index != 2 && b->index != 2 ? 0 : 2; return 0; }
int nvmlDeviceGetNvLinkState(device *d, unsigned l, int *state) {
	if (d->index == 2 || l > 11) return 2;
	*state = l != 3;
	return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(device *d, unsigned l, int *type) { *type = l == 4 ? 2 : 0; return 0; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device *d, unsigned l, pci_info *p) { return pci(1 - d->index, p); }
int nvmlDeviceGetClockInfo(device *d, int kind, unsigned *v) { *v = 1000 + kind; return 0; }
int nvmlDeviceGetPowerUsage(device *d, unsigned *v) { *v = 250000; return 0; }
int nvmlDeviceGetUtilizationRates(device *d, unsigned *v) { v[0] = 97; v[1] = 12; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *n, void *infos) {
	unsigned have = d->index == 2 ? 0 : d->index + 1, room = *n;
	*n = have;
	if (have > room) return 7;
	memset(infos, 0, 24 * have);
	return 0;
}
