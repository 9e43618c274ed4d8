/** `[apim.open_tracer]`, and `[tracing]`, which is ours: traces of requests, their sampling and their receivers. */
import { either, isSet, isTrue } from '../conditions.ts'
import { actsIf, allActIf, section } from '../key.ts'
import { choice, decimal, duration, flag, host, integer, isReadableByOthers, secret, text, url } from '../kinds.ts'
import { otlpHeaders } from '../otlp-headers.ts'

const REMOTE = isTrue('.remote_tracer.enable')

export const openTracer = section(
  'apim.open_tracer',
  'Receivers of traces of requests; `[tracing]` has sampling and OTLP.',
  {
    'remote_tracer.enable': flag(false, 'Send traces to a tracer, as JSON of Zipkin 2 over HTTP.'),
    ...allActIf(REMOTE, {
      'remote_tracer.name': text('zipkin', 'Kind of the tracer: `zipkin`.'),
      'remote_tracer.properties.hostname': host('localhost', 'Host of the tracer.'),
      'remote_tracer.properties.port': integer(9411, '', 1, 65_535, 'Port of the tracer.'),
    }),
    'log_tracer.enable': flag(false, 'Write spans to the log, as events `span`.'),
  },
  {
    roles: ['gateway-worker'],
    rules: [
      {
        keys: ['remote_tracer.name', 'remote_tracer.enable'],
        must: 'remote_tracer.name must be "zipkin"; for other tracers set otlp.endpoint of [tracing]',
        severity: 'error',
        holds: it => !it['remote_tracer.enable'] || it['remote_tracer.name'].toLowerCase() === 'zipkin',
      },
    ],
  },
)

const OTLP = isSet('.otlp.endpoint')
const IS_ON = either(
  isSet('tracing.otlp.endpoint'),
  isTrue('apim.open_tracer.remote_tracer.enable'),
  isTrue('apim.open_tracer.log_tracer.enable'),
)

export const tracing = section(
  'tracing',
  'Traces of requests: W3C trace context, sampling, OTLP over HTTP.',
  {
    'otlp.endpoint': url(
      '',
      ['https', 'http'],
      'Address that gets traces by OTLP, such as `http://localhost:4318/v1/traces`; empty: none.',
    ),
    'otlp.protocol': actsIf(
      OTLP,
      choice('http/protobuf', ['http/protobuf', 'http/json'], 'Encoding of OTLP over HTTP.'),
    ),
    'otlp.headers': actsIf(
      OTLP,
      secret('Fields of OTLP requests, such as `api-key=s3cret`; several with commas, values percent-encoded.'),
    ),
    ...allActIf(IS_ON, {
      service_name: text('sluice', 'Name of this gateway in traces (`service.name`).'),
      sampling_ratio: decimal(1, '', 0, 1, 'Share of the traces that are recorded.'),
      parent_based: flag(true, 'The sampled flag of a `traceparent` of the client decides instead.'),
      faults_per_second: integer(
        100,
        '',
        0,
        1_000_000,
        'Failed requests of one second that are recorded although their trace is not sampled.',
      ),
      queue_max_spans: integer(8192, 'spans', 64, 1_000_000, 'Spans that wait for a receiver; the oldest make room.'),
      batch_max_spans: integer(512, 'spans', 1, 10_000, 'Spans of one request to a receiver.'),
      batch_interval: duration(2000, 'ms', 100, 60_000, 'Longest time before spans are sent.'),
    }),
  },
  {
    roles: ['gateway-worker'],
    rules: [
      {
        keys: ['otlp.headers'],
        must: 'otlp.headers must be a list of name=value with commas, values percent-encoded',
        severity: 'error',
        holds: it => otlpHeaders(it['otlp.headers']) !== undefined,
      },
      {
        keys: ['otlp.endpoint', 'otlp.headers'],
        must: 'otlp.endpoint must be https:// where otlp.headers is set: the fields are readable on the way otherwise',
        severity: 'error',
        holds: it => it['otlp.headers'] === '' || !isReadableByOthers(it['otlp.endpoint']),
      },
      {
        keys: ['otlp.endpoint'],
        must: 'otlp.endpoint is plain HTTP to another machine: traces are readable on the way',
        severity: 'warning',
        holds: it => it['otlp.headers'] !== '' || !isReadableByOthers(it['otlp.endpoint']),
      },
    ],
  },
)
