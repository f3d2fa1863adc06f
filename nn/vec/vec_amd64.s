// AVX2 and FMA row kernels. Each takes n > 0 elements, a multiple of 8; AX counts
// elements, CX holds n. Reductions keep four partial sums, so that the latency of
// one addition does not bound the loop, and add them in a fixed order.

#include "textflag.h"

// log2e = 1.4426950408889634
DATA log2e<>+0(SB)/4, $0x3fb8aa3b
DATA log2e<>+4(SB)/4, $0x3fb8aa3b
DATA log2e<>+8(SB)/4, $0x3fb8aa3b
DATA log2e<>+12(SB)/4, $0x3fb8aa3b
DATA log2e<>+16(SB)/4, $0x3fb8aa3b
DATA log2e<>+20(SB)/4, $0x3fb8aa3b
DATA log2e<>+24(SB)/4, $0x3fb8aa3b
DATA log2e<>+28(SB)/4, $0x3fb8aa3b
GLOBL log2e<>(SB), RODATA|NOPTR, $32

// roundMagic = 12582912.0
DATA roundMagic<>+0(SB)/4, $0x4b400000
DATA roundMagic<>+4(SB)/4, $0x4b400000
DATA roundMagic<>+8(SB)/4, $0x4b400000
DATA roundMagic<>+12(SB)/4, $0x4b400000
DATA roundMagic<>+16(SB)/4, $0x4b400000
DATA roundMagic<>+20(SB)/4, $0x4b400000
DATA roundMagic<>+24(SB)/4, $0x4b400000
DATA roundMagic<>+28(SB)/4, $0x4b400000
GLOBL roundMagic<>(SB), RODATA|NOPTR, $32

// ln2hi = 0.693359375
DATA ln2hi<>+0(SB)/4, $0x3f318000
DATA ln2hi<>+4(SB)/4, $0x3f318000
DATA ln2hi<>+8(SB)/4, $0x3f318000
DATA ln2hi<>+12(SB)/4, $0x3f318000
DATA ln2hi<>+16(SB)/4, $0x3f318000
DATA ln2hi<>+20(SB)/4, $0x3f318000
DATA ln2hi<>+24(SB)/4, $0x3f318000
DATA ln2hi<>+28(SB)/4, $0x3f318000
GLOBL ln2hi<>(SB), RODATA|NOPTR, $32

// ln2lo = -0.00021219444
DATA ln2lo<>+0(SB)/4, $0xb95e8083
DATA ln2lo<>+4(SB)/4, $0xb95e8083
DATA ln2lo<>+8(SB)/4, $0xb95e8083
DATA ln2lo<>+12(SB)/4, $0xb95e8083
DATA ln2lo<>+16(SB)/4, $0xb95e8083
DATA ln2lo<>+20(SB)/4, $0xb95e8083
DATA ln2lo<>+24(SB)/4, $0xb95e8083
DATA ln2lo<>+28(SB)/4, $0xb95e8083
GLOBL ln2lo<>(SB), RODATA|NOPTR, $32

// c5 = 0.000198756915
DATA c5<>+0(SB)/4, $0x39506967
DATA c5<>+4(SB)/4, $0x39506967
DATA c5<>+8(SB)/4, $0x39506967
DATA c5<>+12(SB)/4, $0x39506967
DATA c5<>+16(SB)/4, $0x39506967
DATA c5<>+20(SB)/4, $0x39506967
DATA c5<>+24(SB)/4, $0x39506967
DATA c5<>+28(SB)/4, $0x39506967
GLOBL c5<>(SB), RODATA|NOPTR, $32

// c4 = 0.0013981999507
DATA c4<>+0(SB)/4, $0x3ab743ce
DATA c4<>+4(SB)/4, $0x3ab743ce
DATA c4<>+8(SB)/4, $0x3ab743ce
DATA c4<>+12(SB)/4, $0x3ab743ce
DATA c4<>+16(SB)/4, $0x3ab743ce
DATA c4<>+20(SB)/4, $0x3ab743ce
DATA c4<>+24(SB)/4, $0x3ab743ce
DATA c4<>+28(SB)/4, $0x3ab743ce
GLOBL c4<>(SB), RODATA|NOPTR, $32

// c3 = 0.0083334519073
DATA c3<>+0(SB)/4, $0x3c088908
DATA c3<>+4(SB)/4, $0x3c088908
DATA c3<>+8(SB)/4, $0x3c088908
DATA c3<>+12(SB)/4, $0x3c088908
DATA c3<>+16(SB)/4, $0x3c088908
DATA c3<>+20(SB)/4, $0x3c088908
DATA c3<>+24(SB)/4, $0x3c088908
DATA c3<>+28(SB)/4, $0x3c088908
GLOBL c3<>(SB), RODATA|NOPTR, $32

// c2 = 0.041665795894
DATA c2<>+0(SB)/4, $0x3d2aa9c1
DATA c2<>+4(SB)/4, $0x3d2aa9c1
DATA c2<>+8(SB)/4, $0x3d2aa9c1
DATA c2<>+12(SB)/4, $0x3d2aa9c1
DATA c2<>+16(SB)/4, $0x3d2aa9c1
DATA c2<>+20(SB)/4, $0x3d2aa9c1
DATA c2<>+24(SB)/4, $0x3d2aa9c1
DATA c2<>+28(SB)/4, $0x3d2aa9c1
GLOBL c2<>(SB), RODATA|NOPTR, $32

// c1 = 0.16666665459
DATA c1<>+0(SB)/4, $0x3e2aaaaa
DATA c1<>+4(SB)/4, $0x3e2aaaaa
DATA c1<>+8(SB)/4, $0x3e2aaaaa
DATA c1<>+12(SB)/4, $0x3e2aaaaa
DATA c1<>+16(SB)/4, $0x3e2aaaaa
DATA c1<>+20(SB)/4, $0x3e2aaaaa
DATA c1<>+24(SB)/4, $0x3e2aaaaa
DATA c1<>+28(SB)/4, $0x3e2aaaaa
GLOBL c1<>(SB), RODATA|NOPTR, $32

// c0 = 0.50000001201
DATA c0<>+0(SB)/4, $0x3f000000
DATA c0<>+4(SB)/4, $0x3f000000
DATA c0<>+8(SB)/4, $0x3f000000
DATA c0<>+12(SB)/4, $0x3f000000
DATA c0<>+16(SB)/4, $0x3f000000
DATA c0<>+20(SB)/4, $0x3f000000
DATA c0<>+24(SB)/4, $0x3f000000
DATA c0<>+28(SB)/4, $0x3f000000
GLOBL c0<>(SB), RODATA|NOPTR, $32

// one = 1.0
DATA one<>+0(SB)/4, $0x3f800000
DATA one<>+4(SB)/4, $0x3f800000
DATA one<>+8(SB)/4, $0x3f800000
DATA one<>+12(SB)/4, $0x3f800000
DATA one<>+16(SB)/4, $0x3f800000
DATA one<>+20(SB)/4, $0x3f800000
DATA one<>+24(SB)/4, $0x3f800000
DATA one<>+28(SB)/4, $0x3f800000
GLOBL one<>(SB), RODATA|NOPTR, $32

// expLow = -87.0
DATA expLow<>+0(SB)/4, $0xc2ae0000
DATA expLow<>+4(SB)/4, $0xc2ae0000
DATA expLow<>+8(SB)/4, $0xc2ae0000
DATA expLow<>+12(SB)/4, $0xc2ae0000
DATA expLow<>+16(SB)/4, $0xc2ae0000
DATA expLow<>+20(SB)/4, $0xc2ae0000
DATA expLow<>+24(SB)/4, $0xc2ae0000
DATA expLow<>+28(SB)/4, $0xc2ae0000
GLOBL expLow<>(SB), RODATA|NOPTR, $32

// expHigh = 88.0
DATA expHigh<>+0(SB)/4, $0x42b00000
DATA expHigh<>+4(SB)/4, $0x42b00000
DATA expHigh<>+8(SB)/4, $0x42b00000
DATA expHigh<>+12(SB)/4, $0x42b00000
DATA expHigh<>+16(SB)/4, $0x42b00000
DATA expHigh<>+20(SB)/4, $0x42b00000
DATA expHigh<>+24(SB)/4, $0x42b00000
DATA expHigh<>+28(SB)/4, $0x42b00000
GLOBL expHigh<>(SB), RODATA|NOPTR, $32

// func addAVX2(dst, a, b *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Y0
	VADDPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func mulAVX2(dst, a, b *float32, n int)
TEXT ·mulAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Y0
	VMULPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func mulAddAVX2(dst, a, b *float32, n int)
TEXT ·mulAddAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Y0
	VMOVUPS (DI)(AX*4), Y1
	VFMADD231PS (DX)(AX*4), Y0, Y1
	VMOVUPS Y1, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func axpyAVX2(dst, x *float32, n int, a float32)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS a+24(FP), Y2
	XORQ AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y1
	VFMADD231PS (SI)(AX*4), Y2, Y1
	VMOVUPS Y1, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func scaleAVX2(dst *float32, n int, a float32)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-20
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS a+16(FP), Y2
	XORQ AX, AX

loop:
	VMULPS (DI)(AX*4), Y2, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func normalizeAVX2(dst, x *float32, n int, mean, scale float32)
TEXT ·normalizeAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS mean+24(FP), Y2
	VBROADCASTSS scale+28(FP), Y3
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Y0
	VSUBPS  Y2, Y0, Y0
	VMULPS  Y3, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func sigmoidBackAVX2(dst, y, dy *float32, n int)
TEXT ·sigmoidBackAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ dy+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ AX, AX
	VMOVUPS one<>(SB), Y4

loop:
	VMOVUPS (SI)(AX*4), Y0
	VSUBPS  Y0, Y4, Y1
	VMULPS  (DX)(AX*4), Y0, Y0
	VMULPS  Y1, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func reluBiasAVX2(dst, bias *float32, n int)
TEXT ·reluBiasAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ bias+8(FP), SI
	MOVQ n+16(FP), CX
	XORQ AX, AX
	VXORPS Y4, Y4, Y4

loop:
	VMOVUPS (DI)(AX*4), Y0
	VADDPS  (SI)(AX*4), Y0, Y0
	VMAXPS  Y4, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func reluBackAVX2(dst, y, dy *float32, n int)
TEXT ·reluBackAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ dy+16(FP), DX
	MOVQ n+24(FP), CX
	XORQ AX, AX
	VXORPS Y4, Y4, Y4

loop:
	VMOVUPS (SI)(AX*4), Y0
	VCMPPS  $30, Y4, Y0, Y0 // 30: greater, ordered, quiet
	VANDPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func softmaxBackAVX2(dst, p, dp *float32, n int, c, scale float32)
TEXT ·softmaxBackAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ dp+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS c+32(FP), Y2
	VBROADCASTSS scale+36(FP), Y3
	XORQ AX, AX

loop:
	VMOVUPS (DX)(AX*4), Y0
	VSUBPS  Y2, Y0, Y0
	VMULPS  (SI)(AX*4), Y0, Y0
	VMULPS  Y3, Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func maxArgAVX2(m *float32, arg *int32, x *float32, n int, id int32)
TEXT ·maxArgAVX2(SB), NOSPLIT, $0-36
	MOVQ m+0(FP), DI
	MOVQ arg+8(FP), SI
	MOVQ x+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS id+32(FP), Y5
	XORQ AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VMOVUPS (DX)(AX*4), Y1
	VMOVUPS (SI)(AX*4), Y2
	VCMPPS  $30, Y0, Y1, Y3 // 30: greater, ordered, quiet
	VBLENDVPS Y3, Y1, Y0, Y0
	VBLENDVPS Y3, Y5, Y2, Y2
	VMOVUPS Y0, (DI)(AX*4)
	VMOVUPS Y2, (SI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func dotAVX2(a, b *float32, n int) float32
TEXT ·dotAVX2(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DX
	MOVQ n+16(FP), CX
	XORQ AX, AX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	MOVQ CX, BX
	ANDQ $~31, BX
	CMPQ AX, BX
	JGE  rest

loop4:
	VMOVUPS (SI)(AX*4), Y4
	VFMADD231PS (DX)(AX*4), Y4, Y0
	VMOVUPS 32(SI)(AX*4), Y5
	VFMADD231PS 32(DX)(AX*4), Y5, Y1
	VMOVUPS 64(SI)(AX*4), Y6
	VFMADD231PS 64(DX)(AX*4), Y6, Y2
	VMOVUPS 96(SI)(AX*4), Y7
	VFMADD231PS 96(DX)(AX*4), Y7, Y3
	ADDQ $32, AX
	CMPQ AX, BX
	JLT  loop4

rest:
	CMPQ AX, CX
	JGE  done

loop1:
	VMOVUPS (SI)(AX*4), Y4
	VFMADD231PS (DX)(AX*4), Y4, Y0
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop1

done:
	VADDPS Y1, Y0, Y0
	VADDPS Y3, Y2, Y2
	VADDPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VADDPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// func sumAVX2(x *float32, n int) float32
TEXT ·sumAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	MOVQ CX, BX
	ANDQ $~31, BX
	CMPQ AX, BX
	JGE  rest

loop4:
	VADDPS (SI)(AX*4), Y0, Y0
	VADDPS 32(SI)(AX*4), Y1, Y1
	VADDPS 64(SI)(AX*4), Y2, Y2
	VADDPS 96(SI)(AX*4), Y3, Y3
	ADDQ $32, AX
	CMPQ AX, BX
	JLT  loop4

rest:
	CMPQ AX, CX
	JGE  done

loop1:
	VADDPS (SI)(AX*4), Y0, Y0
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop1

done:
	VADDPS Y1, Y0, Y0
	VADDPS Y3, Y2, Y2
	VADDPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VADDPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+16(FP)
	RET

// func sumSquaresAVX2(x *float32, n int, mean float32) float32
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS mean+16(FP), Y8
	XORQ AX, AX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	MOVQ CX, BX
	ANDQ $~31, BX
	CMPQ AX, BX
	JGE  rest

loop4:
	VMOVUPS (SI)(AX*4), Y4
	VSUBPS Y8, Y4, Y4
	VFMADD231PS Y4, Y4, Y0
	VMOVUPS 32(SI)(AX*4), Y5
	VSUBPS Y8, Y5, Y5
	VFMADD231PS Y5, Y5, Y1
	VMOVUPS 64(SI)(AX*4), Y6
	VSUBPS Y8, Y6, Y6
	VFMADD231PS Y6, Y6, Y2
	VMOVUPS 96(SI)(AX*4), Y7
	VSUBPS Y8, Y7, Y7
	VFMADD231PS Y7, Y7, Y3
	ADDQ $32, AX
	CMPQ AX, BX
	JLT  loop4

rest:
	CMPQ AX, CX
	JGE  done

loop1:
	VMOVUPS (SI)(AX*4), Y4
	VSUBPS Y8, Y4, Y4
	VFMADD231PS Y4, Y4, Y0
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop1

done:
	VADDPS Y1, Y0, Y0
	VADDPS Y3, Y2, Y2
	VADDPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VADDPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+24(FP)
	RET

// func maxAVX2(x *float32, n int) float32
TEXT ·maxAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
	VMOVUPS (SI), Y0
	VMOVAPS Y0, Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y0, Y3
	MOVQ CX, BX
	ANDQ $~31, BX
	CMPQ AX, BX
	JGE  rest

loop4:
	VMAXPS (SI)(AX*4), Y0, Y0
	VMAXPS 32(SI)(AX*4), Y1, Y1
	VMAXPS 64(SI)(AX*4), Y2, Y2
	VMAXPS 96(SI)(AX*4), Y3, Y3
	ADDQ $32, AX
	CMPQ AX, BX
	JLT  loop4

rest:
	CMPQ AX, CX
	JGE  done

loop1:
	VMAXPS (SI)(AX*4), Y0, Y0
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop1

done:
	VMAXPS Y1, Y0, Y0
	VMAXPS Y3, Y2, Y2
	VMAXPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+16(FP)
	RET

// EXP sets x to exp(x) for x <= 88, and to 0 below -87. It overwrites t, p, q, m.
// In order: m = (x >= -87); t = x log2e + magic, whose low bits hold n;
// x = x - n ln2 in two parts; p = polynomial; p = p x x + x + 1; p 2^n; mask.
#define EXP(x, t, p, q, m) \
	VCMPPS       $29, expLow<>(SB), x, m  \
	VMOVUPS      roundMagic<>(SB), t      \
	VFMADD231PS  log2e<>(SB), x, t        \
	VSUBPS       roundMagic<>(SB), t, p   \
	VFNMADD231PS ln2hi<>(SB), p, x        \
	VFNMADD231PS ln2lo<>(SB), p, x        \
	VMOVUPS      c5<>(SB), p              \
	VFMADD213PS  c4<>(SB), x, p           \
	VFMADD213PS  c3<>(SB), x, p           \
	VFMADD213PS  c2<>(SB), x, p           \
	VFMADD213PS  c1<>(SB), x, p           \
	VFMADD213PS  c0<>(SB), x, p           \
	VMULPS       x, x, q                  \
	VFMADD213PS  x, q, p                  \
	VADDPS       one<>(SB), p, p          \
	VPSLLD       $23, t, t                \
	VPADDD       t, p, x                  \
	VANDPS       m, x, x

// func expShiftSumAVX2(dst, x *float32, n int, scale, shift float32) float32
TEXT ·expShiftSumAVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y8
	VBROADCASTSS shift+28(FP), Y9
	VMOVUPS expHigh<>(SB), Y10
	VXORPS Y11, Y11, Y11
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Y0
	VFMSUB213PS Y9, Y8, Y0
	VMINPS Y10, Y0, Y0
	EXP(Y0, Y1, Y2, Y3, Y4)
	VMOVUPS Y0, (DI)(AX*4)
	VADDPS Y0, Y11, Y11
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VEXTRACTF128 $1, Y11, X1
	VADDPS X1, X11, X0
	VPERMILPS $0x4e, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VADDPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+32(FP)
	RET

// func sigmoidBiasAVX2(dst, bias *float32, n int)
TEXT ·sigmoidBiasAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ bias+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVUPS expHigh<>(SB), Y10
	VMOVUPS one<>(SB), Y11
	VXORPS Y12, Y12, Y12
	XORQ AX, AX

loop:
	VMOVUPS (DI)(AX*4), Y0
	VADDPS (SI)(AX*4), Y0, Y0
	VSUBPS Y0, Y12, Y0
	VMINPS Y10, Y0, Y0
	EXP(Y0, Y1, Y2, Y3, Y4)
	VADDPS Y11, Y0, Y0
	VDIVPS Y0, Y11, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET

// func expShiftSumAVX512(dst, x *float32, n int, scale, shift float32) float32
// As expShiftSumAVX2, for n a multiple of 16.
TEXT ·expShiftSumAVX512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), Z8
	VBROADCASTSS shift+28(FP), Z9
	VBROADCASTSS roundMagic<>(SB), Z10
	VBROADCASTSS c5<>(SB), Z12
	VPXORQ Z11, Z11, Z11
	XORQ AX, AX

loop:
	VMOVUPS (SI)(AX*4), Z0
	VFMSUB213PS Z9, Z8, Z0
	VMINPS.BCST expHigh<>(SB), Z0, Z0
	VCMPPS.BCST $29, expLow<>(SB), Z0, K1
	VMOVAPS Z10, Z1
	VFMADD231PS.BCST log2e<>(SB), Z0, Z1
	VSUBPS Z10, Z1, Z2
	VFNMADD231PS.BCST ln2hi<>(SB), Z2, Z0
	VFNMADD231PS.BCST ln2lo<>(SB), Z2, Z0
	VMOVAPS Z12, Z2
	VFMADD213PS.BCST c4<>(SB), Z0, Z2
	VFMADD213PS.BCST c3<>(SB), Z0, Z2
	VFMADD213PS.BCST c2<>(SB), Z0, Z2
	VFMADD213PS.BCST c1<>(SB), Z0, Z2
	VFMADD213PS.BCST c0<>(SB), Z0, Z2
	VMULPS Z0, Z0, Z3
	VFMADD213PS Z0, Z3, Z2
	VADDPS.BCST one<>(SB), Z2, Z2
	VPSLLD $23, Z1, Z1
	VPADDD Z1, Z2, Z2
	VMOVAPS.Z Z2, K1, Z0
	VMOVUPS Z0, (DI)(AX*4)
	VADDPS Z0, Z11, Z11
	ADDQ $16, AX
	CMPQ AX, CX
	JLT  loop
	VEXTRACTF64X4 $1, Z11, Y1
	VADDPS Y1, Y11, Y11
	VEXTRACTF128 $1, Y11, X1
	VADDPS X1, X11, X0
	VPERMILPS $0x4e, X0, X1
	VADDPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VADDPS X1, X0, X0
	VZEROUPPER
	MOVSS X0, ret+32(FP)
	RET

// func adamAVX2(w, m, v, grad *float32, n int, c *[7]float32)
// c holds scale, b1, 1-b1, b2, 1-b2, rate, epsilon.
TEXT ·adamAVX2(SB), NOSPLIT, $0-48
	MOVQ w+0(FP), DI
	MOVQ m+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ grad+24(FP), BX
	MOVQ n+32(FP), CX
	MOVQ c+40(FP), R8
	VBROADCASTSS (R8), Y8
	VBROADCASTSS 4(R8), Y9
	VBROADCASTSS 8(R8), Y10
	VBROADCASTSS 12(R8), Y11
	VBROADCASTSS 16(R8), Y12
	VBROADCASTSS 20(R8), Y13
	VBROADCASTSS 24(R8), Y14
	XORQ AX, AX

loop:
	VMULPS (BX)(AX*4), Y8, Y0
	VMULPS (SI)(AX*4), Y9, Y1
	VFMADD231PS Y0, Y10, Y1 // m
	VMOVUPS Y1, (SI)(AX*4)
	VMULPS Y0, Y0, Y0
	VMULPS (DX)(AX*4), Y11, Y2
	VFMADD231PS Y0, Y12, Y2 // v
	VMOVUPS Y2, (DX)(AX*4)
	VSQRTPS Y2, Y2
	VADDPS Y14, Y2, Y2
	VMULPS Y13, Y1, Y1
	VDIVPS Y2, Y1, Y1
	VMOVUPS (DI)(AX*4), Y3
	VSUBPS Y1, Y3, Y3
	VMOVUPS Y3, (DI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET
