/**
 * Loads ES modules of the operator, which must lie inside the configuration folder. The promises of `node:fs` load with
 * the first of them, because they take each reactor 4 ms and 0.1 MB, and most homes have no module.
 */
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A module that cannot be used; the message names it. */
export class ModuleError extends Error {
  override readonly name = 'ModuleError'
}

/** The function that a module exports as `name`. `path` must lie in `folder`, links resolved. Throws ModuleError. */
export async function loadModule(
  folder: string,
  path: string,
  name: string,
): Promise<(...given: readonly unknown[]) => unknown> {
  const exported = (await loadWholeModule(folder, path))[name]
  if (typeof exported !== 'function') throw new ModuleError(`${path} exports no function ${name}`)
  return exported as (...given: readonly unknown[]) => unknown
}

/** All that a module exports. `path` must lie in `folder`, links resolved. Throws ModuleError. */
export async function loadWholeModule(folder: string, path: string): Promise<Readonly<Record<string, unknown>>> {
  const file = await within(folder, path)
  try {
    // Node loads a module once per URL, so an edited file needs another URL.
    const { stat } = await import('node:fs/promises')
    const { mtimeMs } = await stat(file)
    return (await import(`${pathToFileURL(file)}?${mtimeMs}`)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new ModuleError(`${path} cannot be loaded (${(error as Error).message})`)
  }
}

/** Tells whether a value names a Java class of the reference platform in place of a file. */
export function isJavaClass(name: string): boolean {
  return /^(?:[a-z_]\w*\.)+[A-Z]\w*$/.test(name)
}

/** Why the file of a module cannot be used, found without running it; '' where it can. */
export async function moduleProblem(folder: string, path: string): Promise<string> {
  try {
    await within(folder, path)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

async function within(folder: string, path: string): Promise<string> {
  try {
    const { realpath } = await import('node:fs/promises')
    const [base, file] = await Promise.all([realpath(folder), realpath(resolve(folder, path))])
    const way = relative(base, file)
    if (!isAbsolute(path) && way.split(sep)[0] !== '..' && !isAbsolute(way)) return file
  } catch (error) {
    throw new ModuleError(`${path} is not there (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
  }
  throw new ModuleError(`${path} is outside of the configuration folder`)
}
