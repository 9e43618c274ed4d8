/** Validates names, texts, user names, passwords and roles before the registry stores them. */
import type { Configuration } from '../../config/catalogue.ts'
import { ConfigurationErrors, type Diagnostic } from '../../config/diagnostics.ts'
import { RegistryRefusal } from './registry-errors.ts'

/** Characters that the columns hold. */
const NAME_CHARS_MAX = 255
const TEXT_CHARS_MAX = 32_768

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** A name: one line, not empty, without spaces at its ends. Throws RegistryRefusal. */
export function requireName(field: string, value: string, charsMax = NAME_CHARS_MAX): void {
  if (value === '' || value !== value.trim())
    throw invalidRefusal(field, 'must not be empty, or begin or end with a space')
  if (value.length > charsMax) throw invalidRefusal(field, `must have ${charsMax} characters at most`)
  if (CONTROL.test(value)) throw invalidRefusal(field, 'must not contain control characters')
  if (!value.isWellFormed()) throw invalidRefusal(field, 'must be well-formed Unicode')
}

export function requireText(field: string, value: string): void {
  if (value.length > TEXT_CHARS_MAX) throw invalidRefusal(field, `must have ${TEXT_CHARS_MAX} characters at most`)
  // Database servers refuse NUL.
  if (value.includes('\u0000') || !value.isWellFormed())
    throw invalidRefusal(field, 'must be well-formed Unicode without NUL')
}

/** JSON text of a list or map. Throws RegistryRefusal. */
export function jsonText(field: string, value: unknown): string {
  const text = JSON.stringify(value)
  requireText(field, text)
  return text
}

function invalidRefusal(field: string, must: string): RegistryRefusal {
  return new RegistryRefusal('invalid', field, `${field} ${must}`)
}

export function missingRefusal(subject: string, field = ''): RegistryRefusal {
  return new RegistryRefusal('missing', field, `unknown ${subject}`)
}

export function existsRefusal(subject: string, field: string): RegistryRefusal {
  return new RegistryRefusal('exists', field, `there is already ${subject}`)
}

type UserStoreProperties = Configuration['user_store.properties']

/** Limits the work of argon2, and of the operator's patterns, which may not run in linear time. */
const PASSWORD_CHARS_MAX = 256

/** Role of every user; it is never assigned. */
export const EVERYONE = 'Internal/everyone'

export class AccountRules {
  readonly isCaseInsensitive: boolean
  readonly #username: RegExp
  readonly #password: RegExp
  readonly #role: RegExp

  /** Throws ConfigurationErrors for patterns that JavaScript does not accept. */
  constructor(userStoreProperties: UserStoreProperties) {
    this.isCaseInsensitive = userStoreProperties.CaseInsensitiveUsername
    const errors: Diagnostic[] = []
    this.#username = anchoredPattern('UsernameJavaRegEx', userStoreProperties.UsernameJavaRegEx, errors)
    this.#password = anchoredPattern('PasswordJavaRegEx', userStoreProperties.PasswordJavaRegEx, errors)
    this.#role = anchoredPattern('RolenameJavaRegEx', userStoreProperties.RolenameJavaRegEx, errors)
    if (errors.length > 0) throw new ConfigurationErrors(errors)
  }

  /** Key that names are compared by: composed Unicode (RFC 8265 3.3), in lower case where configured. */
  nameKey(name: string): string {
    const composed = name.normalize('NFC')
    return this.isCaseInsensitive ? composed.toLowerCase() : composed
  }

  /** Throws RegistryRefusal. */
  requireUsername(name: string): void {
    if (!this.#username.test(name)) throw mismatchRefusal('username', 'UsernameJavaRegEx')
  }

  /** Throws RegistryRefusal. */
  requirePassword(password: string): void {
    if (password.length > PASSWORD_CHARS_MAX || !password.isWellFormed() || !this.#password.test(password)) {
      throw mismatchRefusal('password', 'PasswordJavaRegEx')
    }
  }

  /** Throws RegistryRefusal, also for names of built-in roles, which begin with Internal/. */
  requireRole(role: string): void {
    if (!this.#role.test(role) || role.toLowerCase().startsWith('internal/'))
      throw mismatchRefusal('role', 'RolenameJavaRegEx')
  }

  /** A longer password is wrong without a hash. */
  isPasswordLength(password: string): boolean {
    return password.length <= PASSWORD_CHARS_MAX
  }
}

/** Matches the whole text, as Java does. */
function anchoredPattern(key: keyof UserStoreProperties, pattern: string, errors: Diagnostic[]): RegExp {
  try {
    return new RegExp(`^(?:${pattern})$`, 'u')
  } catch {
    errors.push({
      where: '',
      key: `user_store.properties.${key}`,
      given: JSON.stringify(pattern),
      expected: 'must be a pattern that JavaScript accepts',
      hint: 'JavaScript has no possessive quantifiers, inline flags or POSIX classes',
    })
    return /(?!)/
  }
}

function mismatchRefusal(field: string, key: string): RegistryRefusal {
  return new RegistryRefusal('invalid', field, `${field} does not match ${key} of [user_store.properties]`)
}
