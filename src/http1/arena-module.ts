/** Functions in WebAssembly that work on the bytes of the arena, in steps of 16, which JavaScript does not have. */
import { arenaMemory } from './llhttp.ts'

/** `module`: base64 of a module that imports the memory `env.memory`. Returns what the module exports. */
export function arenaFunctions<Functions>(module: string): Functions {
  const compiled = new WebAssembly.Module(Buffer.from(module, 'base64'))
  return new WebAssembly.Instance(compiled, { env: { memory: arenaMemory } }).exports as Functions
}
