/** Transactions that run again where others write the same rows. */
import type { Kysely, Transaction } from 'kysely'
import { isSerializationFailure } from './driver-errors.ts'

/** Attempts of a transaction that fails by a serialisation failure or deadlock, which leaves no effect. */
const ATTEMPTS = 4

/** Runs `work` in a transaction, possibly several times. Rejects with what `work` throws, or an error of the driver. */
export async function runTransaction<Tables, T>(
  kysely: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await kysely.transaction().execute(work)
    } catch (error) {
      if (!isSerializationFailure(error) || attempt === ATTEMPTS) throw error
    }
  }
}
