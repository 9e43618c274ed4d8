/** Makes an OpenAPI document like those of large public APIs: long inline schemas and examples for each operation. */

/** JSON text of an OpenAPI 3.0 document; 1,200 operations have 14 MB. */
export function largeDocument(operations: number, title = 'Large', server = 'http://127.0.0.1:9/base'): string {
  const parameters = ['owner', 'item'].map(name => {
    return { name, in: 'path', required: true, schema: { type: 'string' } }
  })
  const paths = Object.fromEntries(
    Array.from({ length: operations / 2 }, (_, i) => [
      `/resources/{owner}/items-${i}/{item}`,
      {
        get: { operationId: `get-${i}`, parameters, responses: { 200: { description: 'ok', content } } },
        delete: { operationId: `delete-${i}`, parameters, responses: { 204: { description: 'gone' } } },
      },
    ]),
  )
  return JSON.stringify(
    { openapi: '3.0.3', info: { title, version: '1.1.4' }, servers: [{ url: server }], paths },
    null,
    2,
  )
}

const properties = Object.fromEntries(
  Array.from({ length: 60 }, (_, i) => [
    `property_${i}`,
    {
      type: 'string',
      description: `The property number ${i} of this object.`,
      example: 'octocat',
      nullable: i % 2 === 0,
    },
  ]),
)
const value = Object.fromEntries(
  Array.from({ length: 80 }, (_, i) => [`field_${i}`, `https://api.example.com/repos/octocat/${i}`]),
)
const content = {
  'application/json': {
    schema: { type: 'object', properties, required: ['property_0'] },
    examples: { default: { value } },
  },
}
