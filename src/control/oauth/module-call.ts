/** Calls functions of the operator's modules, within a time limit. Their failures are server errors. */
import { withTimeout } from '../../runtime/with-timeout.ts'
import { OAuthError } from './oauth-error.ts'

/** Time limit of one call. */
const CALL_MS = 5000

/** A function that a module exports. */
export type Exported = (...given: readonly unknown[]) => unknown

/** The result of a module's function. Rejects with OAuthError where it fails or is late, so that no token is issued. */
export async function callModule(name: string, exported: Exported, ...given: readonly unknown[]): Promise<unknown> {
  try {
    const result = Promise.try(exported, ...given)
    return await withTimeout(result, CALL_MS, () => new Error(`no result within ${CALL_MS} ms`))
  } catch (error) {
    throw moduleError(name, error instanceof Error ? error.message : 'it threw no error')
  }
}

/** The cause is for the log only: a module's message can contain anything. */
export function moduleError(name: string, cause: string): OAuthError {
  const error = new OAuthError('server_error', 'a server extension failed', { status: 500 })
  error.cause = `${name}: ${cause}`
  return error
}
