/**
 * What handlers do to the thread of their reactor: a promise that rejects and that nobody waits for, a timer that
 * throws, an exit. Node would end the thread, with all its connections.
 */
import { realpathSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

interface HandlerPath {
  readonly name: string
  /** Path of the module inside the home. */
  readonly path: string
}

/** Makes `process.exit` throw on this thread. */
export function refuseExit(): void {
  process.exit = () => {
    throw new Error('a handler cannot end its reactor')
  }
  // Modules may import `exit` by its name.
  syncBuiltinESMExports()
}

/**
 * Takes the errors of these handlers on this thread. `failed`: hears of each, with the name of the handler, or '' where
 * the error does not tell. An exception that no handler has thrown ends the thread as before.
 */
export function takeErrorsOf(
  handlers: readonly HandlerPath[],
  home: string,
  failed: (name: string, error: unknown) => void,
): void {
  const places = handlers.map(({ name, path }) => ({ name, place: placeOf(home, path) }))
  const nameOf = (error: unknown): string => {
    const stack = stackOf(error)
    return places.find(({ place }) => place !== '' && stack.includes(place))?.name ?? ''
  }
  // A rejection may have no stack, or one of Node alone, so each is taken.
  process.on('unhandledRejection', error => failed(nameOf(error), error))
  process.on('uncaughtException', error => {
    const name = nameOf(error)
    if (name === '') throw error
    failed(name, error)
  })
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
