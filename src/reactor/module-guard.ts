/**
 * Keeps modules of the operator from ending or blocking the thread of their reactor, with all its connections: by an
 * exit, a call that waits for a program or a pipe, a promise that rejects and that nobody waits for, or a timer that
 * throws.
 */
import { fstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isInModule } from '../runtime/limited-timers.ts'

interface GuardedModule {
  readonly name: string
  /** Path of the module inside the home. */
  readonly path: string
}

/** Hears of an error that a module has left behind. `name`: of the module; '' where the error does not tell. */
type ErrorListener = (name: string, error: unknown) => void

/** A call that V8 cannot end. It has a name of its own, because its message holds no text of a client. */
class BlockingCallError extends Error {
  override readonly name = 'ModuleError'
}

/** Calls of `node:fs` whose first argument is a path or a descriptor. */
const FILE_CALLS = ['openSync', 'readFileSync', 'writeFileSync', 'appendFileSync', 'copyFileSync']
const DESCRIPTOR_CALLS = ['readSync', 'readvSync', 'writeSync', 'writevSync']
/** Major number of devices that never wait, such as `/dev/null`. */
const MEMORY_DEVICES = 1
const REMEDY = 'remove `synchronous` from a handler, or call the asynchronous form'

type AnyFunction = (...given: readonly unknown[]) => unknown

export class ModuleGuard {
  readonly #home: string
  /** By the text by which a stack names the module. */
  readonly #modules = new Map<string, { readonly name: string; readonly failed: ErrorListener }>()
  #isServing = false

  constructor(home: string) {
    this.#home = home
    const refused = (why: string) => (original: AnyFunction) => this.#replaced(original, why, () => true)
    const exit = refused('a module cannot end its reactor')
    process.exit = exit(process.exit as AnyFunction) as typeof process.exit
    const childProcess = process.getBuiltinModule('node:child_process') as unknown as Record<string, AnyFunction>
    for (const name of ['execSync', 'execFileSync', 'spawnSync']) {
      childProcess[name] = refused(`${name} would stop this reactor until its program ends: ${REMEDY}`)(
        childProcess[name]!,
      )
    }
    const fs = process.getBuiltinModule('node:fs') as unknown as Record<string, AnyFunction>
    for (const name of [...FILE_CALLS, ...DESCRIPTOR_CALLS]) {
      const why = `${name} of a pipe, terminal or socket would stop this reactor until its other end acts: ${REMEDY}`
      fs[name] = this.#replaced(fs[name]!, why, file => isInModule() && mayWait(file))
    }
    // Modules may import them by name.
    syncBuiltinESMExports()
  }

  /** Call before the modules load: they may copy functions. */
  add(modules: readonly GuardedModule[], failed: ErrorListener): void {
    for (const { name, path } of modules) this.#modules.set(placeOf(this.#home, path), { name, failed })
  }

  /**
   * The thread carries traffic from now on. An exception that no module has thrown still ends it. The thread must have
   * no other listener for errors.
   */
  serve(): void {
    if (this.#isServing) return
    this.#isServing = true
    // A rejection may have no stack, or one of Node alone, so each is taken.
    process.on('unhandledRejection', error => this.#take(error, true))
    process.on('uncaughtException', error => {
      if (!this.#take(error, false)) throw error
    })
  }

  /** A module may wait for programs while it loads at the start. */
  #replaced(original: AnyFunction, why: string, blocks: (first: unknown) => boolean): AnyFunction {
    return (...given) => {
      if (this.#isServing && blocks(given[0])) throw new BlockingCallError(why)
      return original(...given)
    }
  }

  /** Returns whether a module has heard of the error. `isAny`: some module has, though its stack names none. */
  #take(error: unknown, isAny: boolean): boolean {
    const stack = stackOf(error)
    const known = [...this.#modules].find(([place]) => place !== '' && stack.includes(place))?.[1]
    if (known !== undefined) known.failed(known.name, error)
    else if (isAny) this.#modules.values().next().value?.failed('', error)
    return known !== undefined || isAny
  }
}

/** A call waits for whoever has the other end of the file. One that cannot be looked at fails by itself. */
function mayWait(file: unknown): boolean {
  try {
    const stats = typeof file === 'number' ? fstatSync(file) : statSync(file as string)
    return stats.isFIFO() || stats.isSocket() || isTerminal(stats)
  } catch {
    return false
  }
}

function isTerminal(stats: Stats): boolean {
  return stats.isCharacterDevice() && ((stats.rdev >> 8) & 0xfff) !== MEMORY_DEVICES
}

/** Returns the stack of an error; '' for none, and for one that cannot be read. */
function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack ?? '') : ''
  } catch {
    return ''
  }
}

/** Returns the text by which a stack names a module that `config/module-file.ts` has loaded; '' without its file. */
function placeOf(home: string, path: string): string {
  try {
    return `${pathToFileURL(realpathSync(resolve(home, path))).href}?`
  } catch {
    return ''
  }
}
