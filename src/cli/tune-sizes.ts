/** The sizes that `tune` varies: their keys, and the values to try. */
import { availableParallelism } from 'node:os'
import type { Configuration } from '../config/catalogue.ts'
import { examine } from '../config/load.ts'
import type { Knob } from '../tune/verdict.ts'
import { type CliArguments, UsageError } from './arguments.ts'

export const HTTP = 'transport.passthru_http'
const BUFFERS = [4096, 8192, 16_384, 32_768, 65_536]

/** Words of --only. */
const NAMES = ['reactors', 'workers', 'queue', 'connections', 'buffer'] as const
type Name = (typeof NAMES)[number]
type Size = readonly [
  key: string,
  unit: string,
  current: number,
  values: readonly number[],
  other?: 'worker_pool_size_max',
]

/** `only`: the option as given. Throws UsageError. */
export function knobsFor(
  configuration: Configuration,
  { home, sets, dataDir }: CliArguments,
  clients: number,
  only: string | undefined,
): readonly Knob[] {
  const http = configuration[HTTP]
  const wanted = only === undefined ? NAMES : only.split(',')
  const unknown = wanted.find(word => !NAMES.some(name => name === word))
  if (unknown !== undefined) throw new UsageError(`--only lists some of ${NAMES.join(', ')}`)
  const processors = availableParallelism()
  const all: Readonly<Record<Name, Size>> = {
    reactors: ['reactors', 'reactors', http.reactors || processors, powersTo(processors)],
    workers: [
      'worker_pool_size_core',
      'messages at once',
      http.worker_pool_size_core,
      powersTo(clients),
      'worker_pool_size_max',
    ],
    queue: ['worker_pool_queue_length', 'messages that wait', http.worker_pool_queue_length, queuesTo(clients)],
    connections: [
      'http.max.connection.per.host.port',
      'connections to one backend',
      http['http.max.connection.per.host.port'],
      powersTo(2 * clients),
    ],
    buffer: ['io_buffer_size', 'bytes', http.io_buffer_size, BUFFERS],
  }
  const isValid = (key: string, value: number): boolean =>
    examine(home, [...sets, `${HTTP}.${key}=${value}`], dataDir).errors.length === 0
  return NAMES.filter(name => wanted.includes(name)).map(name => {
    const [key, unit, current, values, other] = all[name]
    const isPaired = other !== undefined
    const valid = values.filter(value => value !== current && (isPaired || isValid(key, value)))
    return {
      key: `${HTTP}.${key}`,
      others: isPaired ? [{ key: `${HTTP}.${other}`, current: http[other] }] : [],
      unit,
      current,
      // -1 stands for no limit.
      values: [...valid, current].toSorted((one, two) => (one < 0 ? 1 : two < 0 ? -1 : one - two)),
    }
  })
}

function powersTo(most: number): readonly number[] {
  const powers: number[] = []
  for (let power = 1; power < most; power *= 2) powers.push(power)
  return [...powers, most]
}

/** No queue, and powers of four: more than all clients never wait. */
function queuesTo(clients: number): readonly number[] {
  const powers: number[] = []
  for (let power = 1; power < clients; power *= 4) powers.push(power)
  return [0, ...powers, clients]
}
