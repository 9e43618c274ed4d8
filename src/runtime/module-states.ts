/**
 * Modules of the operator that run on threads of the gateway itself, in shared memory: which module each thread runs
 * now, and which modules have hung or ended a thread. Those are isolated: they run on other threads from then on.
 */

const NONE = 0

export class ModuleStates {
  /** A cell for each thread: index of its module, from 1; NONE: it runs none. Then a cell for each module. */
  readonly #cells: Int32Array
  readonly #threads: number

  constructor(shared: SharedArrayBuffer, threads: number) {
    this.#cells = new Int32Array(shared)
    this.#threads = threads
  }

  static allocate(threads: number, modules: number): SharedArrayBuffer {
    return new SharedArrayBuffer((threads + modules) * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Notes that the thread runs a module from now on. No atomic operation: it is read after the end of the thread. */
  enter(thread: number, module: number): void {
    this.#cells[thread] = module + 1
  }

  leave(thread: number): void {
    this.#cells[thread] = NONE
  }

  isIsolated(module: number): boolean {
    return this.#cells[this.#threads + module] !== 0
  }

  /** Isolates a module; returns whether it was not isolated before. */
  isolate(module: number): boolean {
    return Atomics.exchange(this.#cells, this.#threads + module, 1) === 0
  }

  /** Isolates the module that a thread was running when it ended; returns its index, -1 for none. */
  isolateRunning(thread: number): number {
    const module = Atomics.exchange(this.#cells, thread, NONE) - 1
    if (module >= 0) this.isolate(module)
    return module
  }

  /** Isolates no module any more; returns the indices of those that were isolated. */
  release(): readonly number[] {
    const modules = Array.from({ length: this.#cells.length - this.#threads }, (_, module) => module)
    return modules.filter(module => Atomics.exchange(this.#cells, this.#threads + module, 0) !== 0)
  }
}
