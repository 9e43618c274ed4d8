/** Secrets that the first start generates: files in the data folder that only the owner can read. */
import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { ConfigurationErrors } from '../config/diagnostics.ts'

/**
 * Reads the file, or creates it. Linked into place, it is never incomplete, and of concurrent creators one wins. Throws
 * ConfigurationErrors where the file cannot be read or created.
 */
export function readOrCreate(file: string, create: () => Buffer): Buffer {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    const existing = readIfPresent(file)
    if (existing !== undefined) return existing
    writeFileSync(temporary, create(), { mode: 0o600, flag: 'wx' })
    try {
      linkSync(temporary, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    return readFileSync(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw unusableFile(file, `cannot be read or written (${code ?? message})`, "make the gateway's account its owner")
  } finally {
    rmSync(temporary, { force: true })
  }
}

export function readIfPresent(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

export function unusableFile(file: string, expected: string, hint: string): ConfigurationErrors {
  return new ConfigurationErrors([{ where: file, key: '', given: '', expected, hint }])
}
