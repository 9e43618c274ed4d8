/**
 * Files of the data folder that are replaced as a whole. A new one is written beside the old one and renamed into
 * place, so that whoever reads it, and whatever kills the gateway, finds the old or the new one whole. Nobody but its
 * owner reads it.
 */
import { readFileSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

const MODE = 0o600

/** Undefined where there is no such file. Throws what else the file system says. */
export function readKept(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** One after the other: of two at once one fails. Rejects with what the file system says. */
export async function replaceKept(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true })
  const fresh = `${path}.new`
  // One that was left behind may have other rights.
  await rm(fresh, { force: true })
  const handle = await open(fresh, 'wx', MODE)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(fresh, path)
  // Or the new name could be forgotten in a loss of power.
  const directory = await open(folder, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
