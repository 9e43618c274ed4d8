/** Plans which requests are traced, and which of them are recorded. */
import type { Configuration } from '../config/catalogue.ts'
import type { TraceSettings } from '../observe/trace-records.ts'

type TraceConfiguration = Pick<Configuration, 'tracing' | 'apim.open_tracer'>

/** Requests are traced where somebody gets the traces. */
export function isTracing({ tracing, 'apim.open_tracer': openTracer }: TraceConfiguration): boolean {
  return tracing['otlp.endpoint'] !== '' || openTracer['remote_tracer.enable'] || openTracer['log_tracer.enable']
}

/** Settings of one of several reactors; null: requests are not traced. */
export function traceSettings(configuration: TraceConfiguration, reactors: number): TraceSettings | null {
  if (!isTracing(configuration)) return null
  const { sampling_ratio: ratio, parent_based: parentBased, faults_per_second } = configuration.tracing
  return { ratio, parentBased, faultsPerSecond: Math.ceil(faults_per_second / reactors) }
}
