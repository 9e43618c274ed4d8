/** ES modules of the operator that a thread has loaded. An edited file is loaded again, within a second. */
import { loadModule } from '../config/module-file.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'

type ModuleFunction = (...given: readonly unknown[]) => unknown

/** Until the file is looked at again, in milliseconds. */
const FRESH_MS = 1000

export class ModuleCache {
  readonly #home: string
  /** By path and name; paths stand in sequences and in the configuration, which bound their number. */
  readonly #loaded = new Map<string, { readonly loading: Promise<ModuleFunction>; readonly sinceMs: number }>()

  /** `home`: the configuration folder. */
  constructor(home: string) {
    this.#home = home
  }

  /** The function that a module exports. Rejects with ModuleError. */
  function(path: string, name: string): Promise<ModuleFunction> {
    const key = `${name} ${path}`
    const known = this.#loaded.get(key)
    const now = monotonicMs()
    if (known !== undefined && now - known.sinceMs < FRESH_MS) return known.loading
    const loading = loadModule(this.#home, path, name)
    this.#loaded.set(key, { loading, sinceMs: now })
    return loading
  }
}
