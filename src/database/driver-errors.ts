/** Meaning of errors of the drivers: constraints, conflicts, lost connections, servers that do not answer. */
import { maskCredentials, printable } from '../config/diagnostics.ts'
import { NotConnected } from './connect.ts'
import { ConnectionUnavailable } from './connection-pool.ts'

interface DriverError {
  readonly message: string
  /** SQLSTATE of PostgreSQL, an error name of MariaDB and MySQL, ERR_SQLITE_ERROR, or a system error code. */
  readonly code?: string
  readonly errno?: number
  /** SQLite's extended error code. */
  readonly errcode?: number
}

/** SQLSTATE 23505, ER_DUP_ENTRY, SQLITE_CONSTRAINT_UNIQUE and _PRIMARYKEY. */
export const UNIQUE_CODES: readonly (string | number)[] = ['23505', 'ER_DUP_ENTRY', 2067, 1555]
/** SQLSTATE 23503, ER_ROW_IS_REFERENCED_2, ER_NO_REFERENCED_ROW_2, SQLITE_CONSTRAINT_FOREIGNKEY. */
export const REFERENCE_CODES: readonly (string | number)[] = [
  '23503',
  'ER_ROW_IS_REFERENCED_2',
  'ER_NO_REFERENCED_ROW_2',
  787,
]
/** Serialisation failures, deadlocks, SQLITE_BUSY_SNAPSHOT. */
const SERIALIZATION_CODES: readonly (string | number)[] = ['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 517]

/** SQLSTATE 57P01 (terminated by an administrator), a lost connection of MariaDB or MySQL, and system errors. */
const CONNECTION_CODES: readonly (string | number)[] = ['57P01', 'PROTOCOL_CONNECTION_LOST', 'ECONNRESET', 'EPIPE']

/**
 * No connection, yet: errors of the system, SQLSTATE 57P01 to 57P03 (the server stops or starts) and 53300 (too many
 * connections), and those of MariaDB and MySQL.
 */
const UNREACHABLE_CODES: readonly (string | number)[] = [
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', '57P01', '57P02', '57P03', '53300'],
  ...['PROTOCOL_CONNECTION_LOST', 'ER_CON_COUNT_ERROR', 'ER_SERVER_SHUTDOWN'],
]

export function isUnreachable(error: unknown): boolean {
  if (error instanceof ConnectionUnavailable || hasCode(error, UNREACHABLE_CODES)) return true
  return /^(?:Connection terminated|timeout expired)/.test((error as Error).message)
}

export function hasCode(error: unknown, codes: readonly (string | number)[]): boolean {
  const { code, errcode } = error as DriverError
  return (code !== undefined && codes.includes(code)) || (errcode !== undefined && codes.includes(errcode))
}

export function isSerializationFailure(error: unknown): boolean {
  return error instanceof Error && hasCode(error, SERIALIZATION_CODES)
}

/** pg has no code for a connection that ended in the middle. */
export function isConnectionLost(error: unknown): boolean {
  return (
    error instanceof Error && (hasCode(error, CONNECTION_CODES) || error.message.startsWith('Connection terminated'))
  )
}

/** True for an error of the database, false for a bug. */
export function isDatabaseError(error: unknown): boolean {
  if (error instanceof ConnectionUnavailable || error instanceof NotConnected) return true
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return false
  // pg has no code for a connection that ended in the middle.
  return (
    'code' in error ||
    'errcode' in error ||
    /^(Connection terminated|Client (was|has)|Query read|timeout expired)/.test(error.message)
  )
}

const CAUSE_CHARS_MAX = 300

/** One line without credentials. Drivers put values of rows into other members only. */
export function messageOf(error: unknown): string {
  const { message: own, code } = error as DriverError
  // Node reports one error per address that it tried.
  const message = error instanceof AggregateError ? error.errors.map(each => (each as Error).message).join(', ') : own
  const named =
    code === undefined || code === 'ERR_SQLITE_ERROR' || message.includes(code) ? message : `${code} ${message}`
  return printable(maskCredentials(named)).slice(0, CAUSE_CHARS_MAX)
}
