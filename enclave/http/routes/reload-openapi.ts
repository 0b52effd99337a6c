// The reload routes as /api/openapi.json describes them.

import { z } from 'zod';
import { reloadAnswerSchema, reloadStatusSchema } from '../../api/reload.ts';
import { CREDENTIALS, responses } from '../openapi.ts';

export const reloadStatusRouteSchema = {
  summary: 'How the last reload ended',
  tags: ['reload'],
  security: CREDENTIALS,
  response: responses({ 'application/json': z.toJSONSchema(reloadStatusSchema) }, [401, 403]),
};

const { 200: accepted, ...refusals } = responses(
  { 'application/json': z.toJSONSchema(reloadAnswerSchema) },
  [401, 403, 409],
);

export const reloadRouteSchema = {
  summary: 'Read key folders, static tokens, known clients and TLS files again, in the background',
  tags: ['reload'],
  security: CREDENTIALS,
  response: { 202: accepted, ...refusals },
};
