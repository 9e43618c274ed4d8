/**
 * Errors of the registry: a refused change, an unavailable database, and a node that cannot work beside others (signing
 * keys, issuer).
 */

/** A change that the registry refuses. The message names the field and the reason. */
export class RegistryRefusal extends Error {
  override readonly name = 'RegistryRefusal'
  readonly reason: 'exists' | 'missing' | 'invalid' | 'in use'
  /** Name of the field in requests; '' where no field is the cause. */
  readonly field: string

  constructor(reason: RegistryRefusal['reason'], field: string, message: string) {
    super(message)
    this.reason = reason
    this.field = field
  }
}

/** This node cannot decrypt the signing keys of the database. The message names the key or file, and the remedy. */
export class SigningKeysUnusable extends Error {
  override readonly name = 'SigningKeysUnusable'
}

/** Another node of the database issues tokens under another name. The message names both, and the remedy. */
export class IssuerConflict extends Error {
  override readonly name = 'IssuerConflict'
}

/** The database has an issuer, which a node takes that names none. */
export class IssuerShared extends Error {
  override readonly name = 'IssuerShared'
  readonly issuer: string

  constructor(issuer: string) {
    super(`the issuer of the database is ${issuer}`)
    this.issuer = issuer
  }
}

/** The database is unavailable or has failed. The message is for the log and contains no credentials. */
export class RegistryUnavailable extends Error {
  override readonly name = 'RegistryUnavailable'
  /** The server is down, starts, or cannot be reached: a later attempt may succeed as the configuration is. */
  readonly isUnreachable: boolean

  constructor(message: string, isUnreachable = false) {
    super(message)
    this.isUnreachable = isUnreachable
  }
}
