/** ES modules of the operator's own: inside the configuration folder, and nowhere else. */
import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Why a module cannot be used; the message names it. */
export class ModuleBroken extends Error {
  override readonly name = 'ModuleBroken'
}

/** The function that a module exports under `name`. `path`: within `folder`, links resolved. Throws ModuleBroken. */
export async function loadModule(
  folder: string,
  path: string,
  name: string,
): Promise<(...given: readonly unknown[]) => unknown> {
  const file = await within(folder, path)
  let loaded: Readonly<Record<string, unknown>>
  try {
    // A module is loaded once per address: one that was edited since has another.
    const { mtimeMs } = await stat(file)
    loaded = (await import(`${pathToFileURL(file)}?${mtimeMs}`)) as typeof loaded
  } catch (error) {
    throw new ModuleBroken(`${path} cannot be loaded (${(error as Error).message})`)
  }
  const exported = loaded[name]
  if (typeof exported !== 'function') throw new ModuleBroken(`${path} exports no function ${name}`)
  return exported as (...given: readonly unknown[]) => unknown
}

/** Why the file of a module cannot be used, as far as can be said without running it; '' where it can. */
export async function moduleFault(folder: string, path: string): Promise<string> {
  try {
    await within(folder, path)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

async function within(folder: string, path: string): Promise<string> {
  try {
    const [base, file] = await Promise.all([realpath(folder), realpath(resolve(folder, path))])
    const way = relative(base, file)
    if (!isAbsolute(path) && way.split(sep)[0] !== '..' && !isAbsolute(way)) return file
  } catch (error) {
    throw new ModuleBroken(`${path} is not there (${(error as NodeJS.ErrnoException).code ?? 'unreadable'})`)
  }
  throw new ModuleBroken(`${path} is outside of the configuration folder`)
}
