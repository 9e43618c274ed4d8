/** Plans the pools of worker threads: how many messages at once, on how many threads. */
import { availableParallelism } from 'node:os'
import type { Configuration } from '../config/catalogue.ts'
import { ConfigurationErrors } from '../config/diagnostics.ts'
import { databaseSettings } from '../database/database-settings.ts'
import type { DatabasePlan } from '../mounted/database-access.ts'
import { mostAtOnce, type PermitLimits } from '../runtime/shared-permits.ts'
import type { PermitRow, WorkerSettings } from './worker-plan.ts'

/** Permits of each transport and of the background pool. */
function workerLimits(configuration: Configuration): Readonly<Record<PermitRow, PermitLimits>> {
  const { 'transport.passthru_http': http, 'transport.passthru_https': https, mediation } = configuration
  const queueBytes = http.worker_pool_queue_bytes
  const ofTransport = (section: typeof http | typeof https): PermitLimits =>
    limits(section.worker_pool_size_core, section.worker_pool_size_max, section.worker_pool_queue_length, queueBytes)
  return {
    plain: ofTransport(http),
    secured: ofTransport(https),
    background: limits(
      mediation['synapse.core_threads'],
      mediation['synapse.max_threads'],
      mediation['synapse.threads_queue_length'],
      queueBytes,
    ),
  }
}

function limits(core: number, max: number, queueLength: number, queueBytes: number): PermitLimits {
  return { core, max: mostAtOnce({ core, max, queueLength }), queueLength, queueBytes }
}

export function workerSettings(configuration: Configuration): WorkerSettings {
  const { 'transport.passthru_http': http, mediation } = configuration
  const all = workerLimits(configuration)
  return {
    limits: all,
    threads: {
      mediation: workerThreads(Math.max(all.plain.max, all.secured.max)),
      background: workerThreads(all.background.max),
    },
    queueWarningMs: http.worker_pool_queue_warning,
    heapBytes: http.worker_pool_heap_bytes,
    scripts: {
      threads: mediation['synapse.script_mediator_pool_size'],
      timeoutMs: mediation['synapse.script_mediator_timeout'],
      heapBytes: mediation['synapse.script_mediator_heap_bytes'],
    },
  }
}

/** The database of mounted APIs: that of the registry. Null where the configuration names none that is supported. */
export function databasePlan(configuration: Configuration, dataDir: string): DatabasePlan | null {
  try {
    const { apim: settings } = databaseSettings(configuration, dataDir)
    return { settings, folder: dataDir, encryptionKey: configuration.encryption.key }
  } catch (error) {
    if (error instanceof ConfigurationErrors) return null
    throw error
  }
}

/** Threads for so many messages at once; each takes several. */
function workerThreads(atOnce: number): number {
  return Math.min(atOnce, availableParallelism())
}
