/** What names and passwords of accounts must look like, and when two names are the same. */
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationFaults, type Fault } from '../config/fault.ts'
import { RegistryRefusal } from './registry.ts'

type Patterns = Configuration['user_store.properties']

/** Characters: an argon2 of any length would be work for nothing, and patterns are the operator's, not linear. */
const PASSWORD_MAX = 256

/** Of which every user is, without anybody having said so. */
export const EVERYONE = 'Internal/everyone'

export class AccountRules {
  readonly isCaseInsensitive: boolean
  readonly #username: RegExp
  readonly #password: RegExp
  readonly #role: RegExp

  /** Throws ConfigurationFaults for patterns that are none here. */
  constructor(userStoreProperties: Patterns) {
    this.isCaseInsensitive = userStoreProperties.CaseInsensitiveUsername
    const faults: Fault[] = []
    this.#username = whole('UsernameJavaRegEx', userStoreProperties.UsernameJavaRegEx, faults)
    this.#password = whole('PasswordJavaRegEx', userStoreProperties.PasswordJavaRegEx, faults)
    this.#role = whole('RolenameJavaRegEx', userStoreProperties.RolenameJavaRegEx, faults)
    if (faults.length > 0) throw new ConfigurationFaults(faults)
  }

  /** What names are compared by: the same letters, however they were composed (RFC 8265 3.3). */
  nameKey(name: string): string {
    const composed = name.normalize('NFC')
    return this.isCaseInsensitive ? composed.toLowerCase() : composed
  }

  /** Throws RegistryRefusal. */
  mustBeUsername(name: string): void {
    if (!this.#username.test(name)) throw unlike('username', 'UsernameJavaRegEx')
  }

  mustBePassword(password: string): void {
    if (password.length > PASSWORD_MAX || !password.isWellFormed() || !this.#password.test(password)) {
      throw unlike('password', 'PasswordJavaRegEx')
    }
  }

  /** Those of the platform itself have a domain in front. */
  mustBeRole(role: string): void {
    if (!this.#role.test(role) || role.toLowerCase().startsWith('internal/')) throw unlike('role', 'RolenameJavaRegEx')
  }

  /** Longer ones are wrong without being looked at. */
  couldBePassword(password: string): boolean {
    return password.length <= PASSWORD_MAX
  }
}

/** As Java matches: all of the text. */
function whole(key: keyof Patterns, pattern: string, faults: Fault[]): RegExp {
  try {
    return new RegExp(`^(?:${pattern})$`, 'u')
  } catch {
    faults.push({
      where: '',
      key: `user_store.properties.${key}`,
      given: JSON.stringify(pattern),
      expected: 'a pattern that JavaScript knows, too',
      remedy: 'possessive quantifiers, inline flags and POSIX classes are Java alone',
    })
    return /(?!)/
  }
}

function unlike(field: string, key: string): RegistryRefusal {
  return new RegistryRefusal('invalid', field, `${field} does not match ${key} of [user_store.properties]`)
}
