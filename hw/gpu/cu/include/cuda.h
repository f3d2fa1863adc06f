/* CUDA 13 changed what some names stand for; gorgonia.org/cu was written for the
   functions of before, which drivers still export. This header, found before
   NVIDIA's, keeps their names. */
#ifndef PLACER_CUDA_H
#define PLACER_CUDA_H
#include_next <cuda.h>
#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuEventElapsedTime
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#undef cuMemAdvise
#undef cuMemPrefetchAsync
CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
#define cuCtxCreate cuCtxCreate_v2
CUresult cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
#endif
#endif
