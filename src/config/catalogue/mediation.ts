/** `[mediation]`: of the documented keys one is about transport, the others wait for what they are about. */
import { except, inert, live, section } from '../key.ts'
import { count, duration, flag, text } from '../kinds.ts'
import { mustNotExceed, needsBoundedQueue, needsFlag } from './agreements.ts'
import { DAY_MS } from './passthru-keys.ts'

const MEDIATION = 'not built yet: mediation'
const CONVERSION = 'not built yet: conversion between XML and JSON comes with mediation'
const STATISTICS = 'not built yet: statistics of mediation flows'
const DEBUGGER = 'not built yet: the mediation debugger'
const INBOUND = 'not built yet: inbound endpoints'

const THREADS_MAX = 100_000

function threads(fallback: number, meaning: string) {
  return count(fallback, 'threads', 1, THREADS_MAX, meaning)
}

const keys = {
  'synapse.core_threads': inert(threads(20, 'Threads that mediate.'), MEDIATION),
  'synapse.max_threads': inert(threads(100, 'Threads that mediate when the queue is full.'), MEDIATION),
  'synapse.threads_queue_length': inert(
    except(-1, 'unbounded', count(10, 'messages', 0, 10_000_000, 'Messages that wait for a thread.')),
    MEDIATION,
  ),
  'synapse.global_timeout_interval': live(
    except(
      0,
      'off',
      duration(120_000, 'ms', 1, DAY_MS, 'Time for a backend to respond where its endpoint names none of its own.'),
    ),
  ),
  'synapse.enable_xpath_dom_failover': inert(flag(true, 'Evaluate XPath on a DOM where streaming fails.'), MEDIATION),
  'synapse.temp_data_chunk_size': inert(
    count(3072, 'bytes', 1, 16_777_216, 'Size of a piece of buffered messages.'),
    MEDIATION,
  ),
  'synapse.script_mediator_pool_size': inert(
    count(15, 'engines', 1, 10_000, 'Script engines kept for each script mediator.'),
    MEDIATION,
  ),
  'synapse.preserve_namespace_on_xml_to_json': inert(flag(false, 'Keep namespaces in JSON.'), CONVERSION),
  'flow.statistics.enable': inert(flag(false, 'Collect statistics of mediation flows.'), STATISTICS),
  'flow.statistics.capture_all': inert(flag(false, 'Collect them for every artefact.'), STATISTICS),
  'statistics.enable_clean': inert(flag(true, 'Drop statistics after each interval.'), STATISTICS),
  'stat.tracer.collect_payloads': inert(flag(false, 'Keep payloads of traced messages.'), STATISTICS),
  'stat.tracer.collect_mediation_properties': inert(flag(false, 'Keep properties of traced messages.'), STATISTICS),
  'synapse.command_debugger_port': inert(count(9005, '', 1, 65_535, 'Port for commands.'), DEBUGGER),
  'synapse.event_debugger_port': inert(count(9006, '', 1, 65_535, 'Port for events.'), DEBUGGER),
  'synapse.enable_xml_nil': inert(flag(false, 'Write JSON null as an XML nil.'), CONVERSION),
  'synapse.disable_auto_primitive_regex': inert(text('', 'XML texts that match stay texts in JSON.'), CONVERSION),
  'synapse.disable_custom_replace_regex': inert(text('', 'What is cut out of such texts.'), CONVERSION),
  'synapse.enable_namespace_declaration': inert(flag(false, 'Write namespace declarations to JSON.'), CONVERSION),
  'synapse.build_valid_nc_name': inert(flag(false, 'Escape JSON names that are no XML names.'), CONVERSION),
  'synapse.enable_auto_primitive': inert(flag(false, 'Write XML texts that are numbers as JSON numbers.'), CONVERSION),
  'synapse.json_out_auto_array': inert(flag(false, 'Write repeated XML elements as a JSON array.'), CONVERSION),
  'statistics.clean_interval': inert(duration(1000, 'ms', 1, DAY_MS, 'How often statistics are dropped.'), STATISTICS),
  'inbound.core_threads': inert(threads(20, 'Threads of inbound endpoints.'), INBOUND),
  'inbound.max_threads': inert(threads(100, 'Threads of inbound endpoints when the queue is full.'), INBOUND),
}

export const mediation = section('mediation', 'What holds for the mediation of every message.', keys, {
  rules: [
    mustNotExceed('synapse.core_threads', 'synapse.max_threads'),
    mustNotExceed('inbound.core_threads', 'inbound.max_threads'),
    needsBoundedQueue('synapse.max_threads', 'synapse.core_threads', 'synapse.threads_queue_length'),
    needsFlag('flow.statistics.capture_all', 'flow.statistics.enable'),
    needsFlag('statistics.clean_interval', 'statistics.enable_clean'),
  ],
  roles: ['gateway-worker'],
  readBy: ['primary/planning.ts'],
})
