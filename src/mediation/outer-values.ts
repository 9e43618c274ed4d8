/**
 * Values outside of messages that expressions read (D740): variables of the environment, which are secrets, and
 * properties of the system.
 */
import type { SecretValues } from './secret-values.ts'

const NAME = /^[A-Za-z_]\w{0,199}$/

/** Java's names of system properties that have a meaning here. */
const SYSTEM: Readonly<Record<string, () => string>> = {
  'file.separator': () => '/',
  'java.io.tmpdir': () => process.env.TMPDIR ?? '/tmp',
  'line.separator': () => '\n',
  'os.name': () => (process.platform === 'linux' ? 'Linux' : process.platform),
  'path.separator': () => ':',
  'user.dir': () => process.cwd(),
  'user.timezone': () => Intl.DateTimeFormat().resolvedOptions().timeZone,
}

export const SYSTEM_PROPERTIES = Object.keys(SYSTEM)

export function isSystemProperty(name: string): boolean {
  return Object.hasOwn(SYSTEM, name)
}

export function systemProperty(name: string): string {
  return isSystemProperty(name) ? SYSTEM[name]!() : ''
}

export function isVariableName(name: string): boolean {
  return NAME.test(name)
}

/** Returns a function that reads a variable of the environment, '' if unset, and notes that its value is secret. */
export function environmentReader(name: string): (secrets: SecretValues) => string {
  // The environment of a process does not change.
  const value = process.env[name] ?? ''
  return secrets => {
    secrets.readOuter(value)
    return value
  }
}
