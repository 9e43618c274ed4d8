/** Handlers of the operator, and the error format of AI APIs. */
import { live, repeatedSection, required, section } from '../key.ts'
import { flag, text, list } from '../kinds.ts'

/** Keys that stand above the first table of the file. */
export const topLevel = section(
  '',
  'Keys above the first table of the file.',
  {
    enabled_global_handlers: list([], 'Names of the handlers that process every message, in this order.'),
  },
  { roles: ['gateway-worker'] },
)

export const synapseHandlers = repeatedSection(
  'synapse_handlers',
  'A message handler.',
  {
    name: required(text('', 'Name of the handler, for `enabled_global_handlers`.')),
    class: required(text('', 'ES module of the handler, a path inside the home: `sluice help handlers`.')),
    enabled: flag(true, 'Use the handler where `enabled_global_handlers` names it.'),
  },
  { roles: ['gateway-worker'], alternativeForm: 'named' },
)

export const ai = section(
  'apim.ai',
  'APIs of AI models.',
  {
    custom_error_response_sequence: live(
      text(
        '',
        'Fault sequence of AI APIs, such as `_ai_error_response_`, whose response has `error` with code, type and ' +
          'message; empty: the fault sequences of other APIs.',
      ),
    ),
  },
  {
    roles: ['gateway-worker', 'api-publisher', 'api-devportal'],
  },
)
