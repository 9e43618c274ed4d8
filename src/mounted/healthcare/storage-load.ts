/** Loads many services, in batches of one transaction each. */
import type { JsonObject } from './json-text.ts'
import type { ServiceStorage } from './storage.ts'

/** Services of one transaction. */
const BATCH = 200

/**
 * Stores valid resources in batches: those of the batches before a failure stay. Ids are kept; a service with a known
 * id gets its next version. Resolves with the number of services. `progress`: gets the number so far after each batch.
 */
export async function loadServices(
  storage: ServiceStorage,
  resources: AsyncIterable<JsonObject> | Iterable<JsonObject>,
  progress: (loaded: number) => void = () => {},
): Promise<number> {
  let loaded = 0
  let batch: JsonObject[] = []
  const store = async (): Promise<void> => {
    loaded += await storage.load(batch)
    batch = []
    progress(loaded)
  }
  for await (const resource of resources) {
    batch.push(resource)
    if (batch.length === BATCH) await store()
  }
  if (batch.length > 0) await store()
  await storage.analyze()
  return loaded
}
