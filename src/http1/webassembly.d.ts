/** The part of the WebAssembly API that llhttp.ts uses; TypeScript has it only in its library for browsers. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>)
  }
  class Instance {
    constructor(module: Module, imports: { readonly env: Record<string, Memory | ((...offsets: number[]) => number)> })
    readonly exports: Record<string, unknown>
  }
  interface Memory {
    readonly buffer: ArrayBuffer
  }
}
