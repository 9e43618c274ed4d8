/** Secrets that the first start makes up: files in the data folder that nobody but the owner reads. */
import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { ConfigurationFaults } from '../config/fault.ts'

/**
 * What the file holds; where there is none it is made first. Linked into place, it is never there in part, and of two
 * that make it one is kept. Throws ConfigurationFaults where it cannot be.
 */
export function readOrMake(file: string, make: () => Buffer): Buffer {
  const own = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    const known = readIfThere(file)
    if (known !== undefined) return known
    writeFileSync(own, make(), { mode: 0o600, flag: 'wx' })
    try {
      linkSync(own, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    return readFileSync(file)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw unfit(file, `cannot be read or written (${code ?? message})`, 'let the account of the gateway own it')
  } finally {
    rmSync(own, { force: true })
  }
}

export function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

export function unfit(file: string, expected: string, remedy: string): ConfigurationFaults {
  return new ConfigurationFaults([{ where: file, key: '', given: '', expected, remedy }])
}
