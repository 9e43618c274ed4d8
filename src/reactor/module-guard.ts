/**
 * Keeps modules of the operator from ending or blocking the thread of their reactor, with all its connections: by an
 * exit, a call that waits for a program, a promise that rejects and that nobody waits for, a timer that throws.
 */
import { realpathSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

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

type AnyFunction = (...given: readonly unknown[]) => unknown

export class ModuleGuard {
  readonly #home: string
  /** By the text by which a stack names the module. */
  readonly #modules = new Map<string, { readonly name: string; readonly failed: ErrorListener }>()
  #isServing = false

  constructor(home: string) {
    this.#home = home
    const refused = (why: string) => (original: AnyFunction) => this.#replaced(original, why)
    const exit = refused('a module cannot end its reactor')
    process.exit = exit(process.exit as AnyFunction) as typeof process.exit
    const childProcess = process.getBuiltinModule('node:child_process') as unknown as Record<string, AnyFunction>
    for (const name of ['execSync', 'execFileSync', 'spawnSync']) {
      const remedy = 'remove `synchronous` from a handler, or call the asynchronous form'
      childProcess[name] = refused(`${name} would stop this reactor until its program ends: ${remedy}`)(
        childProcess[name]!,
      )
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
  #replaced(original: AnyFunction, why: string): AnyFunction {
    return (...given) => {
      if (this.#isServing) throw new BlockingCallError(why)
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
